//! The shape of a bio: its sectors and pieces of memory, and how they fit a device.

use std::ops::Range;

use super::body::{Bio, Inner};
use crate::memory::is_aligned;
use crate::units::{Limits, SECTOR_SIZE, Sector};

impl Bio {
    /// Moves an operation without memory to `sectors`, which are its sectors or a part of them.
    pub(crate) fn reshape(&mut self, sectors: Range<Sector>) {
        debug_assert!(self.segment_count() == 0, "{self:?} has memory");
        self.inner.sector = sectors.start;
        self.inner.length = (sectors.end.0 - sectors.start.0) * SECTOR_SIZE;
    }

    /// The sector after the last; `None` when the bio is not made of whole sectors, or when it
    /// ends beyond every possible device.
    pub(crate) fn end(&self) -> Option<Sector> {
        self.inner.sector.checked_add(Sector::from_bytes(self.inner.length)?)
    }

    /// Number of pieces of memory that a driver has to name for this bio.
    pub(crate) fn segment_count(&self) -> usize {
        self.inner.segments.count() + usize::from(self.inner.buffer.is_some())
    }

    /// How many bytes from the front on fit in one request within `limits`; `None` if all do, or
    /// if not even one block would. Always whole blocks.
    pub(crate) fn fitting_bytes(&self, limits: &Limits) -> Option<u64> {
        let Inner { length, segments, .. } = &*self.inner;
        if *length <= limits.max_request_bytes && segments.count() <= limits.max_segments
            || self.segment_count() == 0
        {
            return None;
        }
        let mut bytes = limits.max_request_bytes.min(*length);
        if segments.count() > limits.max_segments {
            let first = segments.iter().take(limits.max_segments);
            bytes = bytes.min(first.map(|segment| segment.len() as u64).sum());
        }
        let bytes = bytes / limits.block_bytes * limits.block_bytes;
        (bytes > 0 && bytes < *length).then_some(bytes)
    }

    /// Whether every piece of memory starts and ends at a multiple of `unit` bytes.
    pub(crate) fn is_memory_aligned(&self, unit: usize) -> bool {
        self.inner.segments.iter().all(|segment| is_aligned(segment, unit))
            && self.inner.buffer.as_ref().is_none_or(|buffer| is_aligned(buffer, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Buffer, SegmentList};

    #[test]
    fn the_end_exists_only_for_whole_sectors_on_a_possible_device() {
        assert_eq!(Bio::write_zeroes(Sector(1), 2 * SECTOR_SIZE).end(), Some(Sector(3)));
        assert_eq!(Bio::write_zeroes(Sector(1), 100).end(), None);
        assert_eq!(Bio::write_zeroes(Sector::MAX, SECTOR_SIZE).end(), None);
        assert_eq!(Bio::flush().end(), Some(Sector::ZERO));
    }

    #[test]
    fn alignment_looks_at_every_segment() {
        let aligned = Bio::write(Sector(0), Buffer::zeroed(4096));
        assert!(aligned.is_memory_aligned(4096));
        let mut segments = SegmentList::from(Buffer::zeroed(12));
        segments.pad_to(512);
        assert!(!Bio::write(Sector(0), segments).is_memory_aligned(512));
    }
}
