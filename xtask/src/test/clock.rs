//! How long each test takes, which test programs do not tell.
//!
//! A program runs its tests in the order of its list, some at once, and says when one has ended; then
//! the next begins. So the lines of its output and their times are enough.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The tests of a program that is running.
pub(super) struct Clock {
    waiting: VecDeque<String>,
    begun: HashMap<String, Instant>,
    /// Tests that have ended, each with its time.
    pub(super) ended: Vec<(String, Duration)>,
}

impl Clock {
    /// A program that starts now, lists these tests (`--list --format terse`), and runs so many at
    /// once.
    pub(super) fn new(list: &str, at_once: usize, now: Instant) -> Self {
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let mut clock = Self {
            waiting: tests.map(str::to_owned).collect(),
            begun: HashMap::new(),
            ended: Vec::new(),
        };
        (0..at_once).for_each(|_| clock.begin(now));
        clock
    }

    fn begin(&mut self, now: Instant) {
        self.begun.extend(self.waiting.pop_front().map(|test| (test, now)));
    }

    /// Takes a line of the program's output, which came now.
    pub(super) fn see(&mut self, line: &str, now: Instant) {
        let line = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        let Some((name, _)) = line else { return };
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        if let Some(begun) = self.begun.remove(name) {
            self.ended.push((name.to_owned(), now - begun));
            self.begin(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_begins_when_one_before_it_ends() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = Clock::new("a: test\nb: test\nc::d: test\ne: test\n", 2, start);
        for (line, second) in [
            ("running 4 tests", 0),
            ("test b ... ok", 3),
            ("test c::d - should panic ... ok", 4),
            ("test e ... ignored, it takes hours", 4),
            ("test unknown ... ok", 5),
            ("test a ... FAILED", 9),
        ] {
            clock.see(line, at(second));
        }
        let ended: Vec<_> =
            clock.ended.iter().map(|(name, time)| (name.as_str(), time.as_secs())).collect();
        assert_eq!(ended, [("b", 3), ("c::d", 1), ("e", 0), ("a", 9)]);
    }
}
