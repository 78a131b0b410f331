//! The end of a request: its bios are answered.

use super::body::Request;
use super::failure::Failure;
use crate::bio::Reason;

impl Request {
    /// Records how the request ended, to be [answered](Self::answer) later.
    #[inline]
    pub(crate) fn note(&mut self, result: Result<(), Failure>) {
        self.inner.failure = result.err().map(Box::new);
    }

    /// Ends the request as was recorded; errors are those of `device`.
    #[inline]
    pub(crate) fn answer(mut self, device: &str) {
        match self.inner.failure.take() {
            None => self.complete(),
            Some(failure) => self.fail(device, failure.done, &failure.reason),
        }
    }

    /// Ends the request well.
    #[inline]
    pub(crate) fn complete(mut self) {
        if let Some(first) = self.inner.first.take() {
            first.finish(Ok(()));
        }
        if !self.inner.others.is_empty() {
            let others = std::mem::take(&mut self.inner.others);
            others.into_iter().for_each(|bio| bio.finish(Ok(())));
        }
    }

    /// Ends the request with an error on `device` after the first `done` bytes were transferred:
    /// bios that lie in them succeed, the others fail.
    pub(crate) fn fail(mut self, device: &str, done: u64, reason: &Reason) {
        let mut end = 0;
        for bio in self.take_bios() {
            end += bio.length();
            // A flush transfers nothing, so no number of bytes done makes it succeed.
            if bio.length() > 0 && end <= done {
                bio.succeed();
            } else {
                bio.fail(device, reason.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{Batch, Bio};
    use crate::memory::Buffer;
    use crate::units::{Limits, SECTOR_SIZE, Sector};

    const LIMITS: Limits = Limits {
        block_bytes: SECTOR_SIZE,
        max_request_bytes: 4 * SECTOR_SIZE,
        max_segments: 3,
        memory_alignment: 1,
        clones_ranges: false,
    };

    fn write(sector: u64, sectors: usize) -> Bio {
        Bio::write(Sector(sector), Buffer::zeroed(sectors * 512))
    }

    #[test]
    fn merging_stops_at_gaps_kinds_and_limits() {
        let mut request = Request::new(write(10, 1));
        assert!(!request.accepts(&write(12, 1), &LIMITS), "a gap");
        assert!(!request.accepts(&write(11, 1).force_unit_access(), &LIMITS), "a flag");
        let read = Bio::read(Sector(11), Buffer::zeroed(512));
        assert!(!request.accepts(&read, &LIMITS), "another operation");
        assert!(!request.accepts(&write(11, 4), &LIMITS), "too many bytes");
        for sector in [11, 12] {
            let next = write(sector, 1);
            assert!(request.accepts(&next, &LIMITS));
            request.merge(next);
        }
        assert!(!request.accepts(&write(13, 1), &LIMITS), "too many segments");
        assert_eq!((request.bio_count(), request.length()), (3, 3 * SECTOR_SIZE));
        request.complete();
    }

    #[test]
    fn zeroes_carry_no_memory_and_merge_without_end() {
        let mut request = Request::new(Bio::write_zeroes(Sector(0), 1 << 30));
        let more = Bio::write_zeroes(Sector((1 << 30) / SECTOR_SIZE), 1 << 30);
        assert!(request.accepts(&more, &LIMITS));
        request.merge(more);
        request.complete();
    }

    #[test]
    fn a_partial_failure_spares_the_bios_that_were_done() {
        let batches = [Batch::new(), Batch::new(), Batch::new()];
        let mut request = Request::new(write(0, 1).in_batch(&batches[0]));
        for (batch, sector) in batches[1..].iter().zip(1..) {
            request.merge(write(sector, 1).in_batch(batch));
        }
        request.fail("disk", SECTOR_SIZE + 100, &Reason::ReadOnly);
        assert!(batches[0].wait().is_ok());
        assert_eq!(batches[1].wait().unwrap_err().sector, Sector(1));
        assert_eq!(batches[2].wait().unwrap_err().sector, Sector(2));
    }

    #[test]
    fn a_failed_flush_fails() {
        let batch = Batch::new();
        Request::new(Bio::flush().in_batch(&batch)).fail("disk", 0, &Reason::ReadOnly);
        assert!(batch.wait().is_err());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "dropped unanswered")]
    fn dropping_a_request_shows() {
        drop(Request::new(Bio::flush()));
    }
}
