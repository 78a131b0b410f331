//! What is read from a device before it is asked for.
//!
//! [`ReadAhead`] has one answer to each question: whether it is worth it (`speed`), what is under way
//! (`blocks`, `regions` and `awaited` of metadata, `pieces` of a file), and how much memory there is
//! (`memory`). Those who read ask it: the cache for its blocks, open files for their data, walks, checks.
//!
//! What is under way knows no locks. It carries a number of its reader, by which that sees whether it is
//! older than what the reader has had since: evictions of a part of the cache, or the version of a file's
//! data. Errors are dropped with it: the reader reads again.

mod arrival;
mod awaited;
mod batch;
mod blocks;
mod memory;
mod piece;
mod pieces;
mod pipeline;
mod regions;
mod speed;
mod window;

pub(crate) use arrival::{Arrival, Arrived};
pub(crate) use awaited::{AwaitedRead, ReadState};
pub(crate) use batch::Batch;
pub use memory::ReadAheadBytes;
pub(crate) use piece::Loan;
pub(crate) use pieces::Pieces;
pub(crate) use pipeline::pipeline;
pub(crate) use regions::Begun;
pub use window::ReadPattern;

use crate::address::BufferAddress;
use awaited::AwaitedReads;
use blocks::Blocks;
use memory::FileMemory;
use regions::Regions;
use smallvec::SmallVec;
use speed::ReadSpeed;
use std::sync::Arc;
use undercroft_block::{Bio, BlockDevice, Plug, drives_queues};

/// What is read ahead from one device.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    device: Arc<dyn BlockDevice>,
    speed: ReadSpeed,
    blocks: Blocks,
    regions: Regions,
    awaited: AwaitedReads,
    files: FileMemory,
}

impl ReadAhead {
    pub(crate) fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self {
            device,
            speed: ReadSpeed::default(),
            blocks: Blocks::default(),
            regions: Regions::default(),
            awaited: AwaitedReads::default(),
            files: FileMemory::default(),
        }
    }

    pub(crate) fn device(&self) -> &Arc<dyn BlockDevice> {
        &self.device
    }

    /// How long reads take.
    pub(crate) fn speed(&self) -> &ReadSpeed {
        &self.speed
    }

    /// Reads of blocks that tasks wait for.
    pub(crate) fn awaited(&self) -> &AwaitedReads {
        &self.awaited
    }

    /// Memory for data of files.
    pub(crate) fn files(&self) -> &FileMemory {
        &self.files
    }

    /// Whether the device takes so long to answer that more reads should be under way: as it was for the
    /// last reads of metadata that were waited for.
    pub(crate) fn is_slow(&self) -> bool {
        self.speed.is_slow()
    }

    /// Whether reads are worth beginning ahead of their use by this thread.
    ///
    /// Where [reads are fast](Self::is_slow) the way through another thread takes longer than a copy
    /// out of the page cache. And a thread that drives hardware queues of its own reads nothing
    /// ahead: nothing but that thread could collect what arrives, and another may wait for it.
    pub(crate) fn is_worth_it(&self) -> bool {
        self.is_slow() && !drives_queues()
    }

    /// Begins to read those of these blocks that are not on their way; none is in memory, and each comes
    /// with the evictions of its part of the cache. Those of all parts are `evictions`.
    pub(crate) fn begin(
        &self,
        blocks: impl Iterator<Item = (BufferAddress, u64)>,
        evictions: impl Fn() -> Box<[u64]>,
    ) {
        let (mut plug, mut is_shared) = (None, false);
        for (address, own) in blocks {
            let bios = match self.begin_around(&address, &evictions) {
                Begun::Known => continue,
                Begun::Now(bio) => {
                    is_shared = true;
                    Some(SmallVec::from_buf([bio]))
                }
                Begun::Not => self.blocks.begin(address, own),
            };
            if let Some(bios) = bios {
                let plug = plug.get_or_insert_with(|| Plug::new(&self.device));
                bios.into_iter().for_each(|bio| plug.submit(bio));
            }
        }
        if let Some(plug) = plug.filter(|_| is_shared) {
            // A thread that wants another buffer of a region waits for this read, and may have a lock
            // that this thread waits for next, with a plug around this one that holds it back.
            plug.flush();
        }
    }

    /// Begins the region of a block that is not in memory, if the device is far.
    pub(crate) fn begin_around(
        &self,
        address: &BufferAddress,
        evictions: impl FnOnce() -> Box<[u64]>,
    ) -> Begun {
        if !self.speed.is_far() {
            return Begun::Not;
        }
        self.regions.begin(address, self.device.capacity(), evictions)
    }

    /// What was begun and brings a block, with the evictions of its part of the cache before that.
    /// The part is `part`, with so many `evictions` now.
    pub(crate) fn take(
        &self,
        address: &BufferAddress,
        part: usize,
        evictions: impl FnOnce() -> u64,
    ) -> Option<(Arrival, u64)> {
        let own = self.blocks.take(address);
        own.map(|block| (block.arrival, block.evictions))
            .or_else(|| self.regions.find(address, part, evictions))
    }

    /// Forgets what was begun of this block alone.
    pub(crate) fn forget(&self, address: &BufferAddress) {
        drop(self.blocks.take(address));
    }

    /// The reads of a block, and what they bring.
    pub(crate) fn reads_of(&self, address: &BufferAddress) -> (SmallVec<[Bio; 1]>, Arrival) {
        self.blocks.reads_of(address)
    }
}
