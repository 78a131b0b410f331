//! The blocks of the journal on the device: a ring.

use crate::error::Error;
use crate::format::log_record::LOG_BLOCK;
use crate::format::log_record_seal::cycle_of;
use crate::geometry::Geometry;
use std::ops::Range;
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, read_exact_at, write_all_at};

/// Where the journal is.
pub(crate) struct LogArea<'d> {
    device: &'d dyn BlockDevice,
    start: Sector,
    /// Length in log blocks, not 0.
    pub(crate) blocks: u64,
    /// Log blocks that the device reads at once.
    unit: u64,
}

impl<'d> LogArea<'d> {
    /// The journal of a volume; `None` if it is on another device, or has no blocks.
    pub(crate) fn new(device: &'d dyn BlockDevice, geometry: &Geometry) -> Option<Self> {
        let blocks = u64::from(geometry.log_blocks) << (geometry.block_log - 9);
        let unit = (device.limits().block_bytes / SECTOR_SIZE).max(1);
        let start = geometry.log_start;
        (!start.is_null() && blocks > 0).then(|| Self {
            device,
            start: geometry.sector(start),
            blocks,
            unit,
        })
    }

    /// Blocks from `from` on to `to`, around the end if need be.
    pub(crate) const fn distance(&self, from: u64, to: u64) -> u64 {
        if to >= from { to - from } else { self.blocks - from + to }
    }

    /// The block `count` behind `block`.
    pub(crate) const fn after(&self, block: u64, count: u64) -> u64 {
        (block + count) % self.blocks
    }

    /// The block `count` before `block`, which may be the end of the log.
    pub(crate) const fn before(&self, block: u64, count: u64) -> u64 {
        (block + self.blocks - count % self.blocks) % self.blocks
    }

    /// The blocks of `range`, which does not go around.
    fn read_flat(&self, range: Range<u64>, out: &mut [u8]) -> Result<(), Error> {
        let first = range.start / self.unit * self.unit;
        let end = range.end.next_multiple_of(self.unit);
        if first == range.start && end == range.end {
            return Ok(read_exact_at(self.device, Sector(self.start.0 + first), out)?);
        }
        let mut whole = vec![0; (end - first) as usize * LOG_BLOCK];
        read_exact_at(self.device, Sector(self.start.0 + first), &mut whole)?;
        let skipped = (range.start - first) as usize * LOG_BLOCK;
        out.copy_from_slice(&whole[skipped..skipped + out.len()]);
        Ok(())
    }

    /// `count` blocks from `first` on, around the end of the log if need be; at most all.
    pub(crate) fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; count as usize * LOG_BLOCK];
        let front = count.min(self.blocks - first);
        let (head, rest) = bytes.split_at_mut(front as usize * LOG_BLOCK);
        self.read_flat(first..first + front, head)?;
        if !rest.is_empty() {
            self.read_flat(0..count - front, rest)?;
        }
        Ok(bytes)
    }

    /// Writes whole blocks from `first` on, around the end of the log if need be.
    pub(crate) fn write(&self, first: u64, bytes: &[u8]) -> Result<(), Error> {
        let front = (bytes.len() / LOG_BLOCK).min((self.blocks - first) as usize) * LOG_BLOCK;
        for (block, part) in [(first, &bytes[..front]), (0, &bytes[front..])] {
            if !part.is_empty() {
                write_all_at(self.device, Sector(self.start.0 + block), part)?;
            }
        }
        Ok(())
    }

    /// Cycle in which a block was written last.
    pub(crate) fn cycle(&self, block: u64) -> Result<u32, Error> {
        Ok(cycle_of(&self.read(block, 1)?))
    }

    /// First block of `range`, which does not go around, that was written in `cycle`.
    pub(crate) fn first_of_cycle(
        &self,
        range: Range<u64>,
        cycle: u32,
    ) -> Result<Option<u64>, Error> {
        if range.is_empty() {
            return Ok(None);
        }
        let bytes = self.read(range.start, range.end - range.start)?;
        let mut blocks = range.zip(bytes.chunks_exact(LOG_BLOCK));
        Ok(blocks.find(|(_, bytes)| cycle_of(bytes) == cycle).map(|(block, _)| block))
    }
}
