//! The sums over the closing lines of all test programs, and the tests that took longest.

use std::fmt;
use std::time::Duration;

/// So many of the slowest tests are told.
const SLOWEST: usize = 10;

/// Tests by outcome.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
    /// Tests that no kernel could judge, each with the reason.
    pub(super) not_run: Vec<String>,
    /// Tests behind their package and program, each with its time.
    pub(super) times: Vec<(String, Duration)>,
}

impl Counts {
    /// Adds a line of output when it is one like
    /// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; ...`.
    pub(super) fn line(&mut self, line: &str) {
        let Some(outcome) = line.trim().strip_prefix("test result: ") else { return };
        let mut words = outcome.split([' ', ';']).filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            let Ok(count) = word.parse::<u64>() else { continue };
            match words.peek().copied() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                Some("ignored") => self.ignored += count,
                _ => {}
            }
        }
    }

    /// The tests that took longest, a line each.
    pub(super) fn slowest(&self) -> String {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let line =
            |(name, time): &&(String, Duration)| format!("{:8.1} s  {name}\n", time.as_secs_f64());
        times.iter().take(SLOWEST).map(line).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, ignored, not_run, times: _ } = self;
        if passed + failed + ignored == 0 {
            return Ok(());
        }
        write!(
            formatter,
            "tests: {passed} passed, {failed} failed, {ignored} ignored, {} not run; ",
            not_run.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.16s",
            "test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9s",
        ] {
            counts.line(line);
        }
        assert_eq!(counts.to_string(), "tests: 5 passed, 4 failed, 1 ignored, 0 not run; ");
        assert_eq!(Counts::default().to_string(), "");
    }

    #[test]
    fn the_slowest_come_first() {
        let time =
            |number: u64| (format!("xfs files {number}"), Duration::from_millis(number * 100));
        let counts = Counts { times: (0..20).map(time).collect(), ..Counts::default() };
        let told = counts.slowest();
        assert_eq!(told.lines().count(), SLOWEST);
        assert_eq!(told.lines().next().unwrap().trim(), "1.9 s  xfs files 19");
        assert_eq!(told.lines().last().unwrap().trim(), "1.0 s  xfs files 10");
    }
}
