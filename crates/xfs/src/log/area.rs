//! The blocks of the journal on the device: a ring.

use crate::error::Error;
use crate::format::log_record::LOG_BLOCK;
use crate::format::log_record_seal::cycle_of;
use crate::geometry::Geometry;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{
    Bio, BlockDevice, Buffer, Plug, SECTOR_SIZE, Sector, Waiter, read_exact_at, write_all_at,
};

/// Where the journal is.
pub(crate) struct LogArea<'d> {
    device: &'d Arc<dyn BlockDevice>,
    start: Sector,
    /// Length in log blocks, not 0.
    pub(crate) blocks: u64,
    /// Log blocks that the device reads at once.
    unit: u64,
    /// Blocks that were read in advance: the first, and their bytes. Nobody writes meanwhile but
    /// this area, which forgets them then.
    kept: RefCell<(u64, Vec<u8>)>,
}

impl<'d> LogArea<'d> {
    /// The journal of a volume; `None` if it is on another device, or has no blocks.
    pub(crate) fn new(device: &'d Arc<dyn BlockDevice>, geometry: &Geometry) -> Option<Self> {
        let blocks = u64::from(geometry.log_blocks) << (geometry.block_log - 9);
        let unit = (device.limits().block_bytes / SECTOR_SIZE).max(1);
        let start = geometry.log_start;
        (!start.is_null() && blocks > 0).then(|| Self {
            device,
            start: geometry.sector(start),
            blocks,
            unit,
            kept: RefCell::default(),
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

    /// Reads the blocks of `range`, which does not go around, so that they are there when they are
    /// looked at one by one.
    pub(crate) fn keep(&self, range: Range<u64>) -> Result<(), Error> {
        let bytes = self.read(range.start, range.end - range.start)?;
        self.kept.replace((range.start, bytes));
        Ok(())
    }

    /// Fills in the blocks of `range` if they are kept; says whether.
    fn read_kept(&self, range: &Range<u64>, out: &mut [u8]) -> bool {
        let kept = self.kept.borrow();
        let (first, bytes) = &*kept;
        let end = first + (bytes.len() / LOG_BLOCK) as u64;
        if range.start < *first || range.end > end {
            return false;
        }
        let start = (range.start - first) as usize * LOG_BLOCK;
        out.copy_from_slice(&bytes[start..start + out.len()]);
        true
    }

    /// The blocks of `range`, which does not go around.
    fn read_flat(&self, range: Range<u64>, out: &mut [u8]) -> Result<(), Error> {
        if self.read_kept(&range, out) {
            return Ok(());
        }
        let first = range.start / self.unit * self.unit;
        let end = range.end.next_multiple_of(self.unit);
        if first == range.start && end == range.end {
            return Ok(read_exact_at(self.device.as_ref(), Sector(self.start.0 + first), out)?);
        }
        let mut whole = vec![0; (end - first) as usize * LOG_BLOCK];
        read_exact_at(self.device.as_ref(), Sector(self.start.0 + first), &mut whole)?;
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
        self.kept.take();
        let front = (bytes.len() / LOG_BLOCK).min((self.blocks - first) as usize) * LOG_BLOCK;
        for (block, part) in [(first, &bytes[..front]), (0, &bytes[front..])] {
            if !part.is_empty() {
                write_all_at(self.device.as_ref(), Sector(self.start.0 + block), part)?;
            }
        }
        Ok(())
    }

    /// Cycle in which a block was written last.
    pub(crate) fn cycle(&self, block: u64) -> Result<u32, Error> {
        Ok(cycle_of(&self.read(block, 1)?))
    }

    /// Cycles in which these blocks were written last, all read at the same time.
    pub(crate) fn cycles(&self, blocks: &[u64]) -> Result<Vec<u32>, Error> {
        let plug = Plug::new(self.device);
        let reads: Vec<(usize, Waiter)> = blocks
            .iter()
            .map(|block| {
                let first = block / self.unit * self.unit;
                let buffer = Buffer::zeroed(self.unit as usize * LOG_BLOCK);
                let (bio, waiter) = Bio::read(Sector(self.start.0 + first), buffer).waited();
                plug.submit(bio);
                ((block - first) as usize * LOG_BLOCK, waiter)
            })
            .collect();
        plug.flush();
        let cycle = |(skipped, waiter): (usize, Waiter)| {
            Ok(cycle_of(&waiter.wait().into_buffer()?[skipped..]))
        };
        reads.into_iter().map(cycle).collect()
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
