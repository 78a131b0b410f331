//! Whether long reads go by a pipe or by memory.
//!
//! By a pipe the client copies out of the pages of the file. Where that is [slow](super::page_aliasing) if
//! its memory is from `malloc`, both ways are tried from time to time: nothing else says what memory a
//! client has. All connections try the same way at once, since they share processors: what one of them gets
//! by itself says little.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::cover::Cover;
use super::page_aliasing;

/// Shorter reads are copied: that takes no longer than the calls for a pipe.
const LEAST_PIPED: u64 = 128 << 10;

/// Bytes after a change that were asked for before it, or sent in a burst.
const SKIPPED: u64 = 8 << 20;
/// Bytes whose time is measured: longer than the turn of a thread at a busy processor.
const SPAN: u64 = 8 << 20;
/// Spans of each way, of which the median counts: clients may pause.
const SPANS: usize = 5;
/// Bytes before the first trial with a new client, whose memory may be new to it: that takes longer.
const FIRST_REST: u64 = 64 << 20;
/// Bytes between two trials; after each that changes nothing it is four times as many.
const LEAST_REST: u64 = 256 << 20;
const MOST_REST: u64 = 16 << 30;

/// The way of the long reads of a server.
#[derive(Default)]
pub(super) struct ReadWay {
    trial: Mutex<Trial>,
}

/// A way of bytes to the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pipe,
    Memory,
}

/// Trials of both ways.
struct Trial {
    /// The better one, as far as is known.
    chosen: Way,
    /// Bytes until the next trial, after this one.
    rest: u64,
    phase: Phase,
}

enum Phase {
    /// So many bytes go the chosen way without a look.
    Rest(u64),
    /// The time of the chosen way is measured.
    Chosen(Spans),
    /// The time of the other one is, for a comparison with this one.
    Other(Duration, Spans),
}

/// Times of spans of bytes.
struct Spans {
    skip: u64,
    /// When the span began, and its bytes.
    span: Option<(Instant, u64)>,
    times: SmallVec<[Duration; SPANS]>,
}

impl ReadWay {
    /// Says that there is one more connection: its client may have other memory than those before.
    pub(super) fn begin_again(&self) {
        self.trial.lock().begin_again();
    }

    /// Whether the read of `cover`, which is carried out now, may go by a pipe.
    pub(super) fn is_by_pipe(&self, cover: &Cover) -> bool {
        let length = cover.length();
        cover.is_exact()
            && length >= LEAST_PIPED
            && (!page_aliasing::slows_copies() || self.next(length) == Way::Pipe)
    }

    fn next(&self, length: u64) -> Way {
        let mut trial = self.trial.lock();
        // Under the lock, so that no time is before one that was told.
        trial.next(Instant::now(), length)
    }
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Pipe => Self::Memory,
            Self::Memory => Self::Pipe,
        }
    }

    /// The better one of two with these times. Memory must win by an eighth, since it takes more of this
    /// process's time.
    fn better(pipe: Duration, memory: Duration) -> Self {
        if 8 * memory <= 7 * pipe { Self::Memory } else { Self::Pipe }
    }
}

impl Default for Trial {
    fn default() -> Self {
        Self { chosen: Way::Pipe, rest: LEAST_REST, phase: Phase::Rest(FIRST_REST) }
    }
}

impl Trial {
    /// Begins as anew, with the way that is chosen.
    fn begin_again(&mut self) {
        *self = Self { chosen: self.chosen, ..Self::default() };
    }

    /// The way of a read of `length` bytes that is carried out `now`.
    fn next(&mut self, now: Instant, length: u64) -> Way {
        match &mut self.phase {
            Phase::Rest(left) if *left > length => *left -= length,
            Phase::Rest(_) => self.phase = Phase::Chosen(Spans::new()),
            Phase::Chosen(spans) => {
                if let Some(time) = spans.add(now, length) {
                    self.phase = Phase::Other(time, Spans::new());
                }
            }
            Phase::Other(chosen, spans) => {
                let chosen = *chosen;
                if let Some(other) = spans.add(now, length) {
                    self.choose(chosen, other);
                }
            }
        }
        match self.phase {
            Phase::Other(..) => self.chosen.other(),
            Phase::Rest(_) | Phase::Chosen(_) => self.chosen,
        }
    }

    /// Chooses the way for some time to come, by the times of the chosen and of the other one.
    fn choose(&mut self, chosen: Duration, other: Duration) {
        let better = match self.chosen {
            Way::Pipe => Way::better(chosen, other),
            Way::Memory => Way::better(other, chosen),
        };
        self.rest = if better == self.chosen { MOST_REST.min(4 * self.rest) } else { LEAST_REST };
        self.chosen = better;
        self.phase = Phase::Rest(self.rest);
    }
}

impl Spans {
    fn new() -> Self {
        Self { skip: SKIPPED, span: None, times: SmallVec::new() }
    }

    /// Adds a read of `length` bytes that begins `now`; the median when there are enough spans.
    fn add(&mut self, now: Instant, length: u64) -> Option<Duration> {
        if self.skip > 0 {
            self.skip = self.skip.saturating_sub(length);
            return None;
        }
        let (begin, bytes) = self.span.get_or_insert((now, 0));
        if *bytes >= SPAN {
            // Reads may be longer than the rest of a span.
            let time = now.saturating_duration_since(*begin).as_secs_f64();
            self.times.push(Duration::from_secs_f64(time * SPAN as f64 / *bytes as f64));
            (*begin, *bytes) = (now, 0);
        }
        *bytes += length;
        (self.times.len() == SPANS).then(|| {
            self.times.sort_unstable();
            self.times[SPANS / 2]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u64 = 256 << 10;

    /// A client, with the times in us that a read takes it by a pipe and by memory.
    struct Client {
        trial: Trial,
        now: Instant,
        times: (u64, u64),
    }

    impl Client {
        fn new(times: (u64, u64)) -> Self {
            Self { trial: Trial::default(), now: Instant::now(), times }
        }

        /// The number of reads by memory, of `count`.
        fn reads(&mut self, count: u64) -> u64 {
            let mut by_memory = 0;
            for number in 1..=count {
                let way = self.trial.next(self.now, READ);
                by_memory += u64::from(way == Way::Memory);
                let micros = if way == Way::Pipe { self.times.0 } else { self.times.1 };
                // It pauses at times.
                let pause = if number % 100 == 0 { 50_000 } else { 0 };
                self.now += Duration::from_micros(micros + pause);
            }
            by_memory
        }
    }

    /// Reads of one way in a trial: the skipped, and those of the spans.
    const TRIAL: u64 = (SKIPPED + SPANS as u64 * SPAN) / READ;

    #[test]
    fn the_better_way_is_found_and_used() {
        let mut client = Client::new((150, 60));
        assert!(client.reads(FIRST_REST / READ + 2 * TRIAL) <= TRIAL);
        assert_eq!(client.trial.chosen, Way::Pipe);
        client.reads(4);
        assert_eq!(client.trial.chosen, Way::Memory);
        assert_eq!(client.reads(LEAST_REST / READ / 2), LEAST_REST / READ / 2);
        // The trials become seldom.
        let many = 8 * MOST_REST / READ;
        assert!(client.reads(many) > many * 98 / 100);
    }

    #[test]
    fn a_pipe_stays_where_memory_wins_little() {
        for times in [(50, 70), (50, 50), (50, 46)] {
            let mut client = Client::new(times);
            let many = 8 * MOST_REST / READ;
            assert!(client.reads(many) < many * 2 / 100, "{times:?}");
        }
    }

    #[test]
    fn clients_that_change_are_noticed() {
        let mut client = Client::new((150, 60));
        let most = MOST_REST / READ + 2 * TRIAL + 16;
        client.reads(4 * most);
        assert_eq!(client.trial.chosen, Way::Memory);
        client.times = (40, 60);
        client.reads(most);
        assert_eq!(client.trial.chosen, Way::Pipe);
        client.reads(4 * most);
        client.trial.begin_again();
        client.times = (150, 60);
        client.reads(FIRST_REST / READ + 2 * TRIAL + 16);
        assert_eq!(client.trial.chosen, Way::Memory);
    }

    #[test]
    fn reads_longer_than_a_span_count_by_their_bytes() {
        let mut spans = Spans::new();
        let mut now = Instant::now();
        let median = loop {
            if let Some(median) = spans.add(now, 2 * SPAN) {
                break median;
            }
            now += Duration::from_millis(2);
        };
        assert_eq!(median, Duration::from_millis(1));
    }
}
