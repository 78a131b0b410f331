//! Reads of the blocks that the replay will change, ahead of it.
//!
//! The first pass notes the blocks of all items, in the order in which the second pass will come to
//! them. At the first block that is missing the second pass reads a batch of those that come next:
//! in the order of the device, under one plug. A block that could not be read is read again when it
//! is wanted, so damage in a block that is not replayed is no error.

use crate::format::{
    BufferItem, BufferItemFlags, InodeCreateItem, InodeItem, LogItem, LogItemKind,
};
use crate::geometry::Geometry;
use crate::units::AgBlock;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Bio, BlockDevice, Buffer, Plug, Sector, Waiter};

/// Bytes of a batch.
const BATCH_BYTES: usize = 16 << 20;
/// Blocks that are noted; further ones are read one by one.
const NOTED_MAX: usize = 1 << 20;
/// Sectors of the longest buffer, a directory block of 64 KiB.
pub(super) const LONGEST: u32 = 128;

/// Sectors that are read together.
type Extent = (Sector, u32);

/// The blocks that the first pass met.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Those to be read, in the order of their first items.
    order: VecDeque<Extent>,
    known: FxHashSet<Extent>,
}

/// The blocks still to be read, and those that are there.
pub(super) struct Reads {
    device: Arc<dyn BlockDevice>,
    wanted: Wanted,
    ready: BTreeMap<Sector, Buffer>,
}

impl Wanted {
    /// Notes the blocks of an item, as far as it can be read: the second pass reports what cannot.
    pub(super) fn note(&mut self, item: &LogItem<'_>, geometry: &Geometry) {
        match item.kind {
            LogItemKind::Buffer => {
                let Ok(buffer) = BufferItem::decode(item.regions[0]) else { return };
                if !buffer.flags.contains(BufferItemFlags::CANCEL) {
                    self.add((buffer.sector, buffer.sectors.into()), true);
                }
            }
            LogItemKind::Inode => {
                if let Ok(inode) = InodeItem::decode(item.regions[0]) {
                    self.add((inode.cluster, inode.cluster_sectors), true);
                }
            }
            LogItemKind::InodeCreate => {
                if let Ok(chunk) = InodeCreateItem::decode(item.regions[0]) {
                    self.create(&chunk, geometry);
                }
            }
            _ => {}
        }
    }

    /// New inodes are written without being read.
    fn create(&mut self, chunk: &InodeCreateItem, geometry: &Geometry) {
        let cluster = geometry.cluster_blocks();
        if chunk.blocks > geometry.chunk_inodes() || chunk.ag.0 >= geometry.ag_count {
            return;
        }
        for at in (0..chunk.blocks).step_by(cluster as usize) {
            let Some(block) = chunk.block.0.checked_add(at) else { return };
            let sector = geometry.ag_sector(chunk.ag, AgBlock(block));
            self.add((sector, cluster * geometry.sectors_per_block()), false);
        }
    }

    fn add(&mut self, extent: Extent, read: bool) {
        let sound = (1..=LONGEST).contains(&extent.1) && self.known.len() < NOTED_MAX;
        if sound && self.known.insert(extent) && read {
            self.order.push_back(extent);
        }
    }
}

impl Reads {
    pub(super) fn new(device: Arc<dyn BlockDevice>, wanted: Wanted) -> Self {
        let Wanted { order, .. } = wanted;
        let known = order.iter().copied().collect();
        Self { device, wanted: Wanted { order, known }, ready: BTreeMap::new() }
    }

    /// The bytes of `sectors` from `sector` on, if they were noted and could be read.
    pub(super) fn take(&mut self, sector: Sector, sectors: u32) -> Option<Buffer> {
        while self.wanted.known.contains(&(sector, sectors)) {
            self.read_batch();
        }
        let bytes = sectors as usize * 512;
        if self.ready.get(&sector).is_some_and(|ready| ready.len() == bytes) {
            self.ready.remove(&sector)
        } else {
            None
        }
    }

    /// Forgets what was read of sectors that are written now.
    pub(super) fn forget(&mut self, written: Range<Sector>) {
        if self.ready.is_empty() {
            return;
        }
        let from = Sector(written.start.0.saturating_sub(LONGEST.into()));
        let end = |(at, bytes): (&Sector, &Buffer)| at.0 + bytes.len() as u64 / 512;
        let overlapping = self.ready.range(from..written.end);
        let overlapping = overlapping.filter(|ready| end(*ready) > written.start.0);
        let overlapping: Vec<Sector> = overlapping.map(|(at, _)| *at).collect();
        overlapping.iter().for_each(|at| drop(self.ready.remove(at)));
    }

    /// Reads the blocks that come next.
    fn read_batch(&mut self) {
        // What is left of the batch before was not wanted: most of it is of buffers freed later.
        self.ready.clear();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(extent) = self.wanted.order.pop_front()
        {
            self.wanted.known.remove(&extent);
            bytes += extent.1 as usize * 512;
            batch.push(extent);
        }
        batch.sort_unstable();
        let plug = Plug::new(&self.device);
        let read = |(sector, sectors): Extent| {
            let (bio, waiter) = Bio::read(sector, Buffer::zeroed(sectors as usize * 512)).waited();
            plug.submit(bio);
            (sector, waiter)
        };
        let reads: Vec<(Sector, Waiter)> = batch.into_iter().map(read).collect();
        drop(plug);
        for (sector, waiter) in reads {
            if let Ok(buffer) = waiter.wait().into_buffer() {
                self.ready.insert(sector, buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_block::testing::{Fault, FaultyDevice};
    use undercroft_block::{MemoryDevice, Operation, write_all_at};

    fn reads(faults: Vec<Fault>, extents: &[Extent]) -> (Reads, Arc<FaultyDevice>) {
        let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 << 20));
        for sector in (0..64 << 11).step_by(8) {
            let bytes = [(sector / 8 % 251) as u8; 4096];
            write_all_at(&*memory, Sector(sector), &bytes).unwrap();
        }
        let device = Arc::new(FaultyDevice::new(memory, faults));
        let mut wanted = Wanted::default();
        extents.iter().for_each(|extent| wanted.add(*extent, true));
        (Reads::new(Arc::clone(&device) as _, wanted), device)
    }

    #[test]
    fn blocks_are_read_in_batches_in_the_order_of_the_replay() {
        // Twice a batch, backwards.
        let extents: Vec<Extent> = (0..64 << 8).rev().map(|at| (Sector(at * 8), 8)).collect();
        let (mut reads, device) = reads(Vec::new(), &extents[..2 * (BATCH_BYTES >> 12)]);
        let before = device.statistics();
        for (sector, sectors) in &extents[..2 * (BATCH_BYTES >> 12)] {
            let buffer = reads.take(*sector, *sectors).unwrap();
            assert!(buffer.iter().all(|byte| *byte == (sector.0 / 8 % 251) as u8));
            assert!(reads.take(*sector, *sectors).is_none(), "it is the caller's now");
        }
        let passed = device.statistics() - before;
        assert!(passed.requests < 200, "{passed:?} for neighbours");
        assert!(reads.take(Sector(0), 8).is_none(), "it was not noted");
    }

    #[test]
    fn a_block_that_could_not_be_read_or_was_written_is_not_there() {
        let fault = Fault::new().on(Operation::Read).at(Sector(8)..Sector(16));
        let extents = [(Sector(8), 8), (Sector(24), 8), (Sector(40), 16), (Sector(64), 8)];
        let (mut reads, _) = reads(vec![fault], &extents);
        assert!(reads.take(Sector(8), 8).is_none());
        reads.forget(Sector(47)..Sector(48));
        assert!(reads.take(Sector(40), 16).is_none());
        assert!(reads.take(Sector(24), 16).is_none(), "of another length");
        assert!(reads.take(Sector(24), 8).is_some() && reads.take(Sector(64), 8).is_some());
    }

    #[test]
    fn what_cannot_be_a_block_and_what_is_made_anew_are_not_read() {
        let mut wanted = Wanted::default();
        wanted.add((Sector(0), 0), true);
        wanted.add((Sector(0), LONGEST + 1), true);
        wanted.add((Sector(8), 8), false);
        wanted.add((Sector(8), 8), true);
        assert!(wanted.order.is_empty());
    }
}
