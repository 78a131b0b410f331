//! Free space of an open volume given back to its device.
//!
//! Only what is free for good: where a crash brings an old owner back, the blocks are busy. The group is
//! locked while a piece of it is given back, so that nothing takes the blocks meanwhile.

use crate::error::Error;
use crate::format::AllocRecord;
use crate::group_tree::{FreePart, with_free_extents};
use crate::units::AgNumber;
use crate::volume::Volume;
use std::ops::Range;
use undercroft_block::{Batch, Bio, Plug, SECTOR_SIZE};

/// Bytes that are given back while a group is locked, at most.
const PIECE: u64 = 64 << 20;

/// What was given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Free extents.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Volume {
    /// Gives free extents of at least `minimum` bytes in a range of bytes of the volume back to the device.
    /// `progress` gets the free bytes that were looked at so far. A device may leave a part of it undone: a
    /// discard is advice.
    ///
    /// # Errors
    /// A damaged structure; the device failed; the volume is read-only.
    pub fn discard_free(
        &self,
        range: Range<u64>,
        minimum: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Trimmed, Error> {
        // What was freed last is free for good then.
        self.sync()?;
        let geometry = self.geometry();
        let block = geometry.block_size() as u64;
        let group = u64::from(geometry.ag_blocks);
        let (first, end) = (range.start.div_ceil(block), range.end / block);
        let (mut trimmed, mut seen) = (Trimmed::default(), 0);
        let mut show = |blocks: u32| {
            seen += u64::from(blocks) * block;
            progress(seen);
        };
        for ag in (0..geometry.ag_count).map(AgNumber) {
            let start = u64::from(ag.0) * group;
            // No longer than a group.
            let inside =
                |at: u64| at.saturating_sub(start).min(geometry.ag_length(ag).into()) as u32;
            let inside = inside(first)..inside(end);
            self.discard_in_group(ag, inside, minimum, &mut trimmed, &mut show)?;
        }
        Ok(trimmed)
    }

    /// Gives back what became free for good since this was called the last time.
    ///
    /// # Errors
    /// As [`discard_free`](Self::discard_free).
    pub fn discard_freed(&self) -> Result<u64, Error> {
        let mut trimmed = Trimmed::default();
        for ag in (0..self.geometry().ag_count).map(AgNumber) {
            for freed in self.group(ag).busy.take_freed() {
                let range = freed.start.0..freed.start.0 + freed.len;
                self.discard_in_group(ag, range, 0, &mut trimmed, &mut |_| {})?;
            }
        }
        Ok(trimmed.bytes)
    }

    fn discard_in_group(
        &self,
        ag: AgNumber,
        range: Range<u32>,
        minimum: u64,
        trimmed: &mut Trimmed,
        seen: &mut dyn FnMut(u32),
    ) -> Result<(), Error> {
        let block = self.geometry().block_size() as u64;
        // A piece has some blocks.
        let most = (PIECE / block) as u32;
        let mut at = Some(range.start);
        while let Some(start) = at {
            at = with_free_extents(self, ag, start..range.end, most, |found| {
                let long = found.iter().filter(|free| u64::from(free.whole.len) * block >= minimum);
                let begins = |free: &&FreePart| free.part.start == free.whole.start;
                trimmed.extents += long.clone().filter(begins).count() as u64;
                let parts = long.flat_map(|free| self.group(ag).busy.idle_parts(free.part));
                trimmed.bytes += self.discard(ag, &parts.collect::<Vec<_>>())?;
                seen(found.iter().map(|free| free.part.len).sum());
                Ok(())
            })?;
        }
        Ok(())
    }

    fn discard(&self, ag: AgNumber, parts: &[AllocRecord]) -> Result<u64, Error> {
        let geometry = self.geometry();
        let discards = Batch::new();
        let plug = Plug::new(self.device());
        let mut bytes = 0;
        for part in parts {
            let sectors = u64::from(part.len) * u64::from(geometry.sectors_per_block());
            let bio = Bio::discard(geometry.ag_sector(ag, part.start), sectors * SECTOR_SIZE);
            plug.submit(bio.in_batch(&discards));
            bytes += sectors * SECTOR_SIZE;
        }
        plug.flush();
        discards.wait()?;
        Ok(bytes)
    }
}
