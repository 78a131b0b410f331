//! Latencies: a log-linear histogram, written by one thread and read by any.
//!
//! Each power of two is divided into [`STEPS`] equal steps, so a value is known to one part in
//! `STEPS`, as in the well-known HDR histogram. A value finds its bucket by a shift and an addition.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use super::{Tally, Writers};

/// Steps in a power of two.
const STEPS: u64 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Values from 2^40 ns (18 minutes) on share the last bucket.
const MAX_BITS: u32 = 40;
const BUCKETS: usize = (MAX_BITS - STEP_BITS + 1) as usize * STEPS as usize;

/// The bucket of a value in nanoseconds.
fn bucket(nanoseconds: u64) -> usize {
    let value = nanoseconds.min((1 << MAX_BITS) - 1);
    // Values below 2 * STEPS have buckets of their own; above, the highest bits decide.
    let shift = (u64::BITS - STEP_BITS - 1).saturating_sub((value | STEPS).leading_zeros());
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The least value of a bucket, in nanoseconds.
fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    (bucket - shift * STEPS) << shift
}

/// Counts of latencies, being written.
pub(crate) struct LatencyCells {
    counts: Box<[Tally]>,
    sum: Tally,
}

impl Default for LatencyCells {
    fn default() -> Self {
        let counts = (0..BUCKETS).map(|_| Tally::default()).collect();
        Self { counts, sum: Tally::default() }
    }
}

impl LatencyCells {
    /// Counts `times` times a latency in nanoseconds.
    pub(crate) fn record(&self, nanoseconds: u64, times: u64, writers: Writers) {
        self.counts[bucket(nanoseconds)].add(times, writers);
        self.sum.add(nanoseconds.wrapping_mul(times), writers);
    }

    /// The counts so far.
    pub(crate) fn snapshot(&self) -> Latencies {
        Latencies {
            counts: self.counts.iter().map(Tally::get).collect(),
            nanoseconds: self.sum.get(),
        }
    }
}

/// A histogram of latencies: from submission to the answer, to one part in sixteen.
#[derive(Clone, PartialEq, Eq)]
pub struct Latencies {
    counts: Box<[u64]>,
    nanoseconds: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), nanoseconds: 0 }
    }
}

impl Latencies {
    /// Number of requests.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean, exact; zero without requests.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.checked_div(self.count()).unwrap_or(0))
    }

    /// The latency that a share of the requests (0.0 to 1.0, for instance 0.99) did not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let count = self.count();
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (value, requests) in self.buckets() {
            seen += requests;
            if seen >= rank {
                return Duration::from_nanos(value);
            }
        }
        Duration::ZERO
    }

    /// The middle of each bucket that is not empty, in nanoseconds, with its requests.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().enumerate().filter(|(_, requests)| **requests > 0).map(
            |(bucket, &requests)| {
                let (low, next) = (lower_bound(bucket), lower_bound(bucket + 1));
                (low + (next - low) / 2, requests)
            },
        )
    }
}

impl Add for Latencies {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(one, more)| *one += more);
        self.nanoseconds += other.nanoseconds;
        self
    }
}

impl Sub for Latencies {
    type Output = Self;

    /// The values recorded between an earlier snapshot `other` and this one.
    fn sub(mut self, other: Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(one, less)| *one -= less);
        self.nanoseconds -= other.nanoseconds;
        self
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p99", &self.quantile(0.99))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_hold_their_values() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(lower_bound(index)), index);
            assert_eq!(bucket(lower_bound(index + 1) - 1), index);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn mean_and_quantiles_are_those_of_the_values() {
        let cells = LatencyCells::default();
        for value in 1..=1000 {
            cells.record(value * 1000, 1, Writers::One);
        }
        let before = cells.snapshot();
        assert_eq!(before.count(), 1000);
        assert_eq!(before.mean(), Duration::from_nanos(500_500));
        for (share, expected) in [(0.0, 1e3), (0.5, 500e3), (0.99, 990e3), (1.0, 1e6)] {
            let found = before.quantile(share).as_nanos() as f64;
            assert!((found / expected - 1.0).abs() < 0.07, "{share}: {found}");
        }
        cells.record(5, 1, Writers::Many);
        let passed = cells.snapshot() - before.clone();
        assert_eq!((passed.count(), passed.mean()), (1, Duration::from_nanos(5)));
        assert_eq!(before.clone() + passed, cells.snapshot());
    }
}
