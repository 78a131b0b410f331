//! Latencies of many operations, kept as a histogram.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longest latency that is told apart from longer ones, in nanoseconds (one minute).
const LONGEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits that are kept of each latency.
const DIGITS: u8 = 3;

/// Collects latencies; one for each thread, merged at the end.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    histogram: Histogram<u64>,
}

/// Latencies of an experiment in microseconds, exact to three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of operations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Half of the operations took no longer.
    pub p50: f64,
    /// 90 of 100 took no longer.
    pub p90: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// 999 of 1,000 took no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds are constants that the histogram accepts");
        Self { histogram }
    }
}

impl LatencyRecorder {
    /// Adds an operation that took `latency`; above one minute it counts as one minute.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(nanoseconds);
    }

    /// Adds what `other` collected.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all recorders have the same bounds");
    }

    /// The latencies collected.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let histogram = &self.histogram;
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            count: histogram.len(),
            mean: histogram.mean() / 1e3,
            stddev: histogram.stdev() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_merged_recorders() {
        let mut all = LatencyRecorder::default();
        for half in [1..=500_u64, 501..=1000] {
            let mut part = LatencyRecorder::default();
            half.for_each(|micros| part.record(Duration::from_micros(micros)));
            all.merge(&part);
        }
        let latency = all.latency();
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 2e-3;
        assert_eq!(latency.count, 1000);
        assert!(near(latency.mean, 500.5), "{latency:?}");
        assert!(near(latency.stddev, 288.7), "{latency:?}");
        assert!(near(latency.p50, 500.0), "{latency:?}");
        assert!(near(latency.p99, 990.0), "{latency:?}");
        assert!(near(latency.max, 1000.0), "{latency:?}");
    }

    #[test]
    fn very_long_latencies_are_a_minute() {
        let mut recorder = LatencyRecorder::default();
        recorder.record(Duration::from_secs(3600));
        assert!((recorder.latency().max / 60e6 - 1.0).abs() < 1e-2);
    }
}
