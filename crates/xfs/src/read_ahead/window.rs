//! The order in which a file is read, and what is to be read ahead for it.

use std::ops::Range;

/// Fewest bytes that are read ahead of a reader that has begun to go on where it ended. At first
/// they are four times those that it reads at once.
const LEAST: u64 = 16 << 10;

/// Most bytes of the first window of a reader of short reads that did not say how it reads.
const FIRST: u64 = 512 << 10;

/// The same of a reader that said that it reads in order.
const FIRST_IN_ORDER: u64 = 1 << 20;

/// Most bytes that are read ahead of a reader: enough for 4 GB/s from a device that answers after
/// two milliseconds, and for 400 MB/s from one that takes twenty.
const MOST: u64 = 8 << 20;

/// Fewest bytes by which a large window moves on.
const STEP: u64 = 1 << 20;

/// A run of reads may leave this part of its bytes, read ahead and not asked for.
const WASTE: u64 = 10;

/// The order in which an open file is going to be read, as far as its reader knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPattern {
    /// Not known: a read that goes on where the one before ended has the data behind it read ahead.
    #[default]
    Unknown,
    /// From front to back: the data behind each read is read ahead, from the first one on.
    Sequential,
    /// Here and there: nothing is read ahead.
    Random,
}

/// The bytes ahead of a reader.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pattern: ReadPattern,
    /// Where a reader goes on that reads one after the other.
    next: u64,
    /// Bytes to be read ahead of it; 0 before it has begun.
    bytes: u64,
    /// End of what was begun ahead of it.
    begun: u64,
    /// The reader had to wait for what was read ahead.
    is_late: bool,
    /// Bytes that were read one after the other up to `next`.
    run: u64,
    /// Bytes of a run that left much of what was read ahead for it: the next ones are expected to
    /// be as long. So a reader that takes a few blocks here and there wastes little.
    usual: Option<u64>,
}

impl Window {
    pub(crate) fn set_pattern(&mut self, pattern: ReadPattern) {
        self.pattern = pattern;
    }

    /// Says that the reader came before its data.
    pub(crate) fn set_late(&mut self) {
        self.is_late = true;
    }

    /// Whether a read from the byte `start` on jumps: what was read ahead is of no use then. A
    /// reader that said that it reads in order leaves holes out.
    pub(crate) fn is_left(&self, start: u64) -> bool {
        match self.pattern {
            ReadPattern::Sequential => start < self.next,
            _ => start != self.next,
        }
    }

    /// Says that this range is read ahead, too.
    pub(crate) fn begin(&mut self, range: &Range<u64>) {
        if range.start <= self.begun.max(self.next) {
            self.begun = self.begun.max(range.end);
        }
    }

    /// Begins anew where the reader is: what was read ahead is gone.
    pub(crate) fn restart(&mut self) {
        (self.bytes, self.begun) = (0, 0);
    }

    /// Ends a run: the reader jumps, and does not come back to what was read ahead.
    fn end_run(&mut self) {
        let left = self.begun.saturating_sub(self.next);
        if left > self.run / WASTE {
            self.usual = Some(self.run);
        } else if self.usual.is_some_and(|usual| self.run > usual) {
            let is_long = self.usual.is_some_and(|usual| self.run / 4 > usual);
            self.usual = (!is_long).then_some(self.run);
        }
        self.run = 0;
        self.restart();
    }

    /// Notes a read of `range` of a file of `size` bytes; returns the range to be read ahead of the
    /// next one. `changed`: the data of the file changed since the read before.
    ///
    /// The window is doubled when the reader was ahead of it, and moves on with each quarter, or
    /// half, that was read. So most of its bytes are those that the device has under way in the
    /// time that it takes to answer.
    pub(crate) fn follow(
        &mut self,
        range: &Range<u64>,
        size: u64,
        changed: bool,
    ) -> Option<Range<u64>> {
        let jumps = self.is_left(range.start);
        if jumps {
            self.end_run();
        } else if changed {
            self.restart();
        }
        self.next = range.end;
        self.run += range.end - range.start;
        let must_wait = match self.pattern {
            ReadPattern::Unknown => jumps && self.usual.is_none_or(|usual| usual <= self.run),
            ReadPattern::Sequential => false,
            ReadPattern::Random => true,
        };
        if must_wait || changed {
            return None;
        }
        let begun = self.begun.max(range.end);
        let step = (self.bytes / 4).max(STEP).min(self.bytes / 2);
        if begun - range.end > self.bytes - step || begun >= size {
            return None;
        }
        let first = match self.pattern {
            ReadPattern::Sequential => FIRST_IN_ORDER,
            _ => first_of(range.end - range.start),
        };
        let grown = if self.is_late { 2 * self.bytes } else { self.bytes };
        self.bytes = grown.clamp(first, MOST);
        self.is_late = false;
        // A run that is longer than usual may be longer still.
        let rest = self.usual.map(|usual| match self.run.checked_sub(usual) {
            None | Some(0) => usual - self.run,
            Some(_) => self.run / 4,
        });
        let bytes = rest.filter(|_| self.pattern == ReadPattern::Unknown).unwrap_or(u64::MAX);
        self.begun = begun.max(size.min(range.end + self.bytes.min(bytes)));
        (begun < self.begun).then_some(begun..self.begun)
    }
}

/// Bytes of the first window of a reader that reads `step` at once: the next two of its reads, if
/// they are long ones.
fn first_of(step: u64) -> u64 {
    (4 * step).clamp(LEAST, FIRST).max(2 * step).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    /// Reads of `step` bytes in order from `from` on; what was begun ahead of them.
    fn walk(window: &mut Window, from: u64, step: u64, count: u64) -> Vec<Range<u64>> {
        let read = |number| from + number * step..from + (number + 1) * step;
        (0..count).filter_map(|number| window.follow(&read(number), SIZE, false)).collect()
    }

    #[test]
    fn a_window_moves_on_and_grows_while_its_reader_waits() {
        let mut window = Window::default();
        let step = FIRST / 4;
        assert_eq!(walk(&mut window, 0, step, 1), vec![step..step + FIRST]);
        // The reader comes to the second half, or quarter.
        assert_eq!(walk(&mut window, step, step, 2), vec![step + FIRST..3 * step + FIRST]);
        let mut most = 0;
        for number in 3..4000 {
            window.set_late();
            for ahead in walk(&mut window, number * step, step, 1) {
                most = most.max(ahead.end - (number + 1) * step);
            }
        }
        assert_eq!(most, MOST);
    }

    #[test]
    fn a_reader_in_order_may_leave_holes_out() {
        let mut window = Window::default();
        window.set_pattern(ReadPattern::Sequential);
        let mut most = 0;
        for number in 0..100 {
            window.set_late();
            for ahead in walk(&mut window, number * 3 * FIRST, FIRST, 1) {
                most = most.max(ahead.end - number * 3 * FIRST - FIRST);
            }
        }
        assert_eq!(most, MOST);
        assert!(window.is_left(0) && !window.is_left(SIZE));
    }

    #[test]
    fn a_reader_that_jumps_has_nothing_read_ahead() {
        let mut window = Window::default();
        for number in [7, 3, 9, 1_u64] {
            let at = number * 1_000_000;
            assert_eq!(window.follow(&(at..at + 10), SIZE, false), None);
        }
        assert!(window.follow(&(1_000_010..1_000_020), SIZE, false).is_some());
        window.set_pattern(ReadPattern::Random);
        assert!(walk(&mut window, 1_000_020, FIRST, 8).is_empty());
        window.set_pattern(ReadPattern::Sequential);
        let at = 5_000_000;
        assert_eq!(window.follow(&(0..at), SIZE, false), Some(at..at + FIRST_IN_ORDER));
    }

    /// Bytes read ahead of runs of `run` bytes, in steps of 4 KiB, at many places.
    fn runs(window: &mut Window, run: u64) -> u64 {
        let begun =
            (0..100).flat_map(|stride| walk(window, (stride * 7 % 100) << 22, 4096, run / 4096));
        begun.map(|begun| begun.end - begun.start).sum()
    }

    #[test]
    fn a_reader_of_a_few_blocks_here_and_there_wastes_little() {
        for run in [8 << 10, 12 << 10, 64 << 10, 1 << 20] {
            let mut window = Window::default();
            let ahead = runs(&mut window, run);
            assert!(ahead < 100 * run * 11 / 10, "{ahead} for 100 times {run}");
            // From the second run on, all but its first read.
            assert!(ahead > 98 * (run - 4096), "{ahead} for 100 times {run}");
        }
    }

    #[test]
    fn a_long_run_is_read_ahead_after_short_ones() {
        let mut window = Window::default();
        runs(&mut window, 12 << 10);
        let mut ahead = 0;
        for number in 0..10_000 {
            window.set_late();
            let begun = walk(&mut window, SIZE / 2 + number * 4096, 4096, 1);
            ahead += begun.iter().map(|begun| begun.end - begun.start).sum::<u64>();
        }
        assert!(ahead > 10_000 * 4096, "{ahead}");
        // The next ones are expected to be as long.
        assert_eq!(window.follow(&(0..4096), SIZE, false), Some(4096..4096 + LEAST));
    }

    #[test]
    fn a_file_that_changes_between_reads_has_nothing_read_ahead() {
        let mut window = Window::default();
        for number in 0..50 {
            assert_eq!(window.follow(&(number * 10..number * 10 + 10), SIZE, true), None);
        }
        assert!(window.follow(&(500..510), SIZE, false).is_some());
    }

    #[test]
    fn nothing_is_begun_behind_the_end() {
        let mut window = Window::default();
        assert_eq!(window.follow(&(0..60), 100, false), Some(60..100));
        assert_eq!(window.follow(&(60..80), 100, false), None);
        assert_eq!(window.follow(&(80..100), 100, false), None);
    }
}
