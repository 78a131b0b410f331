//! Where the journal is, and what records look like in it (docs/format/journal/area.md).

use crate::format::OperationHeader;
use crate::format::log_record::{LOG_BLOCK, MAX_BUFFER, MIN_BUFFER, header_blocks, next_cycle};
use crate::geometry::Geometry;
use crate::units::Lsn;
use undercroft_block::Sector;

/// Place and sizes of the journal of a volume. They stay as long as it is open, since one size of
/// records must hold for all that is between tail and head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogShape {
    /// First sector.
    pub(crate) start: Sector,
    /// Length in log blocks.
    pub(crate) blocks: u32,
    /// Size of the buffer in which records are assembled, in bytes: decides their headers.
    pub(crate) buffer_bytes: u32,
    /// Records start at multiples of this, in bytes.
    pub(crate) unit: usize,
}

impl LogShape {
    /// The shape for a volume with an internal journal. `buffer_bytes` is what records are
    /// assembled in if the volume does not ask for more, a power of two.
    pub(crate) fn new(geometry: &Geometry, log_sector_bytes: usize, buffer_bytes: u32) -> Self {
        let stripe = geometry.log_stripe_unit;
        let unit = if stripe > 1 { stripe as usize } else { log_sector_bytes.max(LOG_BLOCK) };
        let wanted = buffer_bytes.clamp(MIN_BUFFER, MAX_BUFFER).max(stripe);
        Self {
            start: geometry.sector(geometry.log_start),
            // At most 2 GiB.
            blocks: geometry.log_blocks << (geometry.block_log - 9),
            buffer_bytes: wanted.next_power_of_two().min(MAX_BUFFER),
            unit,
        }
    }

    /// Length of the journal in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.blocks as usize * LOG_BLOCK
    }

    /// Header bytes of each record.
    pub(crate) const fn header_bytes(&self) -> usize {
        header_blocks(self.buffer_bytes) as usize * LOG_BLOCK
    }

    /// Most bytes of a record, with its headers.
    pub(crate) const fn record_bytes(&self) -> usize {
        self.buffer_bytes as usize / self.unit * self.unit
    }

    /// Most bytes of data in a record.
    pub(crate) const fn capacity(&self) -> usize {
        self.record_bytes() - self.header_bytes()
    }

    /// The most that a checkpoint takes in the journal whose items have `bytes` bytes with the
    /// headers of their operations (docs/format/journal/writing.md#constraints).
    pub(crate) const fn checkpoint_bytes(&self, bytes: usize) -> usize {
        /// Start, header of the transaction, commit.
        const FRAME: usize = 4 * OperationHeader::LEN + 16;
        // The rest at the end of a record, and the header of a region that goes on.
        let usable = self.capacity() - 3 * OperationHeader::LEN;
        let records = (bytes + FRAME).div_ceil(usable);
        let overhead = self.header_bytes() + 3 * OperationHeader::LEN;
        bytes + FRAME + records * overhead + self.unit
    }

    /// What must stay free at all times: a record of any kind, and one that says that the volume
    /// was unmounted.
    pub(crate) const fn slack_bytes(&self) -> usize {
        self.record_bytes() + self.header_bytes() + 2 * self.unit + LOG_BLOCK
    }

    /// Most bytes that the items of one checkpoint may have: a third of the journal, so that a
    /// checkpoint fits beside the one that holds the records it pins. It is bounded further, by the
    /// time that closing takes.
    pub(crate) const fn checkpoint_limit(&self) -> usize {
        const MOST: usize = 64 << 20;
        let third = (self.bytes() - self.slack_bytes()) / 3;
        let third = third / self.record_bytes() * (self.capacity() - 3 * OperationHeader::LEN);
        if third < MOST { third } else { MOST }
    }

    /// Bytes of items at which a checkpoint is closed in the background.
    pub(crate) const fn checkpoint_target(&self) -> usize {
        const MOST: usize = 8 << 20;
        let eighth = self.bytes() / 8;
        if eighth < MOST { eighth } else { MOST }
    }

    /// The position `bytes` behind `position`.
    pub(crate) const fn advance(&self, position: Lsn, bytes: usize) -> Lsn {
        let block = position.block() as u64 + (bytes / LOG_BLOCK) as u64;
        if block < self.blocks as u64 {
            return Lsn::new(position.cycle(), block as u32);
        }
        Lsn::new(next_cycle(position.cycle()), (block - self.blocks as u64) as u32)
    }

    /// Bytes from `tail` to `head`, which is less than a whole round ahead.
    pub(crate) const fn distance(&self, tail: Lsn, head: Lsn) -> usize {
        let blocks = if head.block() >= tail.block() {
            head.block() - tail.block()
        } else {
            self.blocks - tail.block() + head.block()
        };
        blocks as usize * LOG_BLOCK
    }
}
