//! How long the device takes to answer a read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A read that takes this long is worth beginning ahead of its use. Less is a copy out of the page
/// cache, which costs as much when it is done ahead.
const SLOW: Duration = Duration::from_micros(50);

/// A device that takes this long brings more in about the same time: 64 KiB pass in half of it at 2
/// Gbit/s.
const FAR: Duration = Duration::from_micros(500);

/// The time of reads of metadata that a thread waited for: a mean in which the last ones weigh most,
/// and short ones more than long ones.
#[derive(Debug, Default)]
pub(crate) struct ReadSpeed {
    /// In nanoseconds; 0 before the first read.
    mean: AtomicU64,
}

impl ReadSpeed {
    /// Measures one read.
    pub(crate) fn measure<T>(&self, read: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = read();
        self.count(start.elapsed());
        result
    }

    /// Measures the wait for a read that was begun before: one that has ended says nothing.
    pub(crate) fn measure_wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = wait();
        let time = start.elapsed();
        if time > SLOW {
            self.count(time);
        }
        result
    }

    /// Counts a read of this length. Of several at once some may be lost.
    pub(crate) fn count(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mean = match self.mean.load(Ordering::Relaxed) {
            0 => time,
            // The first reads of a device take longer than those after them.
            mean if time < mean => mean - (mean - time) / 2,
            mean => mean + (time - mean) / 8,
        };
        self.mean.store(mean.max(1), Ordering::Relaxed);
    }

    /// Whether reads are worth beginning ahead of their use.
    pub(crate) fn is_slow(&self) -> bool {
        self.mean.load(Ordering::Relaxed) > SLOW.as_nanos() as u64
    }

    /// Whether a read is worth making longer for what is wanted next.
    pub(crate) fn is_far(&self) -> bool {
        self.mean.load(Ordering::Relaxed) > FAR.as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reads_decide() {
        let speed = ReadSpeed::default();
        assert!(!speed.is_slow(), "there was no read");
        speed.count(2 * SLOW);
        assert!(speed.is_slow());
        (0..64).for_each(|_| speed.count(SLOW / 10));
        assert!(!speed.is_slow());
        (0..64).for_each(|_| speed.count(2 * SLOW));
        assert!(speed.is_slow());
        speed.count(Duration::MAX);
        assert!(speed.is_slow());
    }
}
