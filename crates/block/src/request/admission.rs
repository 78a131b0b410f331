//! The requests that a device can serve, and the answers to the rest.

use super::body::Request;
use rustix::io::Errno;

use crate::bio::{Operation, Reason};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// The requests that a device can serve, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) capacity: Sector,
    pub(crate) read_only: bool,
}

impl Request {
    /// Whether a device can serve all bios of the request.
    #[inline]
    pub(crate) fn is_admissible(&self, terms: &Terms) -> bool {
        let Terms { limits, capacity, read_only } = terms;
        let in_blocks = |bytes: u64| bytes.is_multiple_of(limits.block_bytes);
        self.sectors().end <= *capacity
            && !(*read_only && self.inner.operation.modifies())
            && (limits.clones_ranges || self.inner.operation != Operation::CloneRange)
            && (limits.block_bytes == SECTOR_SIZE
                || (in_blocks(self.inner.sector.0.wrapping_mul(SECTOR_SIZE))
                    && in_blocks(self.inner.length)))
            && (limits.memory_alignment <= 1
                || self.bios().all(|bio| bio.is_memory_aligned(limits.memory_alignment)))
    }

    /// Fails the bios that `device`, which is as `terms` says, cannot serve, and returns the rest,
    /// if any. Bios beyond the end do not affect those merged with them.
    pub(crate) fn admit(mut self, device: &str, terms: &Terms) -> Option<Self> {
        let capacity = terms.capacity;
        // Sectors ascend through the bios, so those out of range are the last ones.
        while self.sectors().end > capacity {
            let last = self.inner.others.pop();
            let Some(bio) = last.or_else(|| self.inner.first.take()) else { break };
            self.inner.length -= bio.length();
            self.inner.segments -= bio.segment_count();
            bio.fail(device, Reason::OutOfRange { capacity });
            self.inner.first.as_ref()?;
        }
        if self.is_admissible(terms) {
            return Some(self);
        }
        let reason = if terms.read_only && self.inner.operation.modifies() {
            Reason::ReadOnly
        } else if self.inner.operation == Operation::CloneRange && !terms.limits.clones_ranges {
            Errno::OPNOTSUPP.into()
        } else {
            let Limits { block_bytes, memory_alignment, .. } = terms.limits;
            Reason::Misaligned { unit: block_bytes.max(memory_alignment as u64) }
        };
        self.fail(device, 0, &reason);
        None
    }
}
