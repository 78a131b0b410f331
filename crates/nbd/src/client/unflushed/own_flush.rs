//! When the client flushes by itself what it keeps.

use std::time::Duration;

use super::Amount;

/// Copies of so many bytes stay in the caches of a processor, so that the memory of the last ones is
/// there when it is used again.
const CACHED: u64 = 1 << 20;
/// The time of a flush that is not needed, in that of the writes that it covers: one part in so many.
const SHARE: u32 = 100;

/// The flushes that no request asks for.
#[derive(Debug)]
pub(crate) struct OwnFlush {
    /// One is under way.
    is_sent: bool,
    /// UnflushedWrites bytes after which one may be worth its time.
    wanted: u64,
    /// The time that the last flush took.
    took: Duration,
}

impl Default for OwnFlush {
    fn default() -> Self {
        Self { is_sent: false, wanted: CACHED, took: Duration::ZERO }
    }
}

impl OwnFlush {
    /// Whether one is due where `kept` of at most `limit` bytes are kept: half of what may be, or what the
    /// caches hold if the server flushes quickly. The request that was answered now took `time`.
    ///
    /// Both times are those of requests among others: a flush that only waits for its turn is quick.
    pub(crate) fn is_due(
        &mut self,
        kept: Amount,
        limit: u64,
        time: impl FnOnce() -> Duration,
    ) -> bool {
        if self.is_sent {
            return false;
        }
        if kept.bytes > limit / 2 {
            return true;
        }
        if kept.bytes < self.wanted {
            return false;
        }
        self.wanted = kept.bytes + CACHED;
        let changes = u32::try_from(kept.changes).unwrap_or(u32::MAX);
        self.took.saturating_mul(SHARE) <= time().saturating_mul(changes)
    }

    /// One was sent.
    pub(crate) fn sent(&mut self) {
        self.is_sent = true;
    }

    /// It was answered.
    pub(crate) fn answered(&mut self) {
        self.is_sent = false;
    }

    /// That one, or one that was asked for, took so long, and what it covered is not kept any more.
    pub(crate) fn flushed(&mut self, took: Duration) {
        self.wanted = CACHED;
        self.took = took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 * CACHED;

    /// So many bytes in writes of 4 KiB.
    fn kept(bytes: u64) -> Amount {
        Amount { changes: (bytes / 4096) as usize, bytes }
    }

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn a_server_that_flushes_as_it_writes_does_it_often() {
        let mut flush = OwnFlush::default();
        let is_due = |flush: &mut OwnFlush, bytes| flush.is_due(kept(bytes), LIMIT, || micros(50));
        assert!(!is_due(&mut flush, CACHED - 1));
        assert!(is_due(&mut flush, CACHED), "to see how long it takes");
        flush.sent();
        assert!(!is_due(&mut flush, LIMIT), "one at a time");
        flush.flushed(micros(128));
        assert!(!is_due(&mut flush, LIMIT), "it was another");
        flush.answered();
        // Of 256 writes a hundredth.
        assert!(is_due(&mut flush, CACHED));
        flush.flushed(micros(129));
        assert!(!is_due(&mut flush, CACHED));
        assert!(!is_due(&mut flush, 2 * CACHED - 1), "it is looked at now and then");
        assert!(is_due(&mut flush, 2 * CACHED));
    }

    #[test]
    fn a_server_that_flushes_slowly_does_it_when_it_has_to() {
        for took in [micros(1_000_000), Duration::MAX] {
            let mut flush = OwnFlush::default();
            flush.flushed(took);
            let mut all = (CACHED..=LIMIT / 2).step_by(4096);
            assert!(all.all(|bytes| !flush.is_due(kept(bytes), LIMIT, || micros(50))));
            assert!(flush.is_due(kept(LIMIT / 2 + 1), LIMIT, || micros(50)));
        }
    }
}
