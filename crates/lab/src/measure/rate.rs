//! The rate of operations over several runs, and their CPU time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use serde::{Deserialize, Serialize};

use crate::measure::usage::Usage;
use crate::statistics::Spread;

/// Part of a run before its window, in which things settle.
pub(crate) const WARM_UP: u32 = 10;

/// The counts of the measured part of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Its length.
    pub(crate) elapsed: Duration,
    /// I/Os that the rate is about.
    pub(crate) ios: u64,
    /// I/Os of all workers, which share the cost.
    pub(crate) all_ios: u64,
    /// Cost to the process.
    pub(crate) usage: Usage,
}

impl Window {
    /// Lets things settle for a tenth of `duration`, then measures for `duration`. `ios` says how
    /// many I/Os have ended so far.
    pub(crate) fn measure(duration: Duration, ios: impl Fn() -> u64) -> Self {
        thread::sleep(duration / WARM_UP);
        let begin = (ios(), Usage::now(), Instant::now());
        thread::sleep(duration);
        let end = (ios(), Usage::now(), Instant::now());
        let ios = end.0 - begin.0;
        Self { elapsed: end.2 - begin.2, ios, all_ios: ios, usage: end.1 - begin.1 }
    }
}

/// I/Os a second over several runs, and the cost of one. In JSON its fields stand among those of
/// the outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Number of runs.
    pub repeats: usize,
    /// Length of one run as asked for, in seconds.
    pub seconds: f64,
    /// I/Os in all runs.
    pub ios: u64,
    /// I/Os a second: mean of the runs.
    pub iops: f64,
    /// Standard deviation of the I/Os a second of the runs.
    pub stddev: f64,
    /// I/Os a second of each run.
    pub iops_of_runs: Vec<f64>,
    /// CPU time of the whole process for each I/O, in nanoseconds.
    pub cpu_ns_per_io: f64,
    /// The same of each run.
    #[serde(default)]
    pub cpu_ns_of_runs: Vec<f64>,
    /// Context switches because a thread slept, for each I/O.
    pub voluntary_switches_per_io: f64,
    /// The same of each run.
    #[serde(default)]
    pub voluntary_switches_of_runs: Vec<f64>,
    /// Context switches because another thread was given the CPU, for each I/O.
    pub involuntary_switches_per_io: f64,
}

impl Rate {
    /// The rate of `windows`, which were asked to last `seconds` each.
    pub(crate) fn of(seconds: Duration, windows: &[Window]) -> Self {
        let rate = |window: &Window| window.ios as f64 / window.elapsed.as_secs_f64();
        let iops_of_runs: Vec<f64> = windows.iter().map(rate).collect();
        let spread = Spread::of(&iops_of_runs);
        let all_ios: u64 = windows.iter().map(|window| window.all_ios).sum();
        let per_io = |count: fn(&Usage) -> u64| {
            per(windows.iter().map(|window| count(&window.usage)).sum(), all_ios)
        };
        let of_runs = |count: fn(&Usage) -> u64| -> Vec<f64> {
            windows.iter().map(|window| per(count(&window.usage), window.all_ios)).collect()
        };
        Self {
            repeats: windows.len(),
            seconds: seconds.as_secs_f64(),
            ios: windows.iter().map(|window| window.ios).sum(),
            iops: spread.mean,
            stddev: spread.stddev,
            iops_of_runs,
            cpu_ns_per_io: per_io(|usage| usage.cpu_ns),
            cpu_ns_of_runs: of_runs(|usage| usage.cpu_ns),
            voluntary_switches_per_io: per_io(|usage| usage.voluntary),
            voluntary_switches_of_runs: of_runs(|usage| usage.voluntary),
            involuntary_switches_per_io: per_io(|usage| usage.involuntary),
        }
    }

    /// Coefficient of variation: the deviation as a share of the mean; 0 if the mean is.
    #[must_use]
    pub fn variation(&self) -> f64 {
        if self.iops == 0.0 { 0.0 } else { self.stddev / self.iops }
    }
}

/// The sum of counts that each have one writer.
pub(crate) fn total(counts: &[CachePadded<AtomicU64>]) -> u64 {
    counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// `count` for each of `of`; 0 if there is none.
pub(crate) fn per(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_mean_of_the_runs_and_costs_are_shared_by_all() {
        let window = |ios| Window {
            elapsed: Duration::from_millis(500),
            ios,
            all_ios: 2 * ios,
            usage: Usage { cpu_ns: 1000 * ios, voluntary: ios, involuntary: 0 },
        };
        let rate = Rate::of(Duration::from_millis(500), &[window(10), window(30)]);
        assert_eq!((rate.repeats, rate.ios, rate.iops), (2, 40, 40.0));
        assert_eq!(rate.iops_of_runs, [20.0, 60.0]);
        assert_eq!(rate.cpu_ns_of_runs, [500.0, 500.0]);
        assert_eq!((rate.cpu_ns_per_io, rate.voluntary_switches_per_io), (500.0, 0.5));
        assert!((rate.variation() - 800_f64.sqrt() / 40.0).abs() < 1e-12);
    }

    #[test]
    fn no_runs_are_no_rate() {
        let rate = Rate::of(Duration::ZERO, &[]);
        assert_eq!((rate.iops, rate.variation(), rate.cpu_ns_per_io), (0.0, 0.0, 0.0));
    }
}
