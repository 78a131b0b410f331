//! Inodes that are in memory.

use super::{Inode, InodeState};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::units::InodeNumber;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Independent parts of the table, so that threads seldom meet.
const SHARDS: usize = 64;

/// Parts of one group.
const PARTS: usize = 4;

/// Inodes of a part that are kept although nobody holds them. Their content is in their cluster
/// buffers too: an inode is stored by the commit that changed it, so dropping one loses nothing.
const IDLE_LIMIT: usize = 256;

/// All inodes in memory, by number.
#[derive(Debug)]
pub struct InodeTable {
    shards: Box<[Shard]>,
    /// Low bits of a number that tell inodes of one group apart.
    group_bits: u32,
}

/// A part of the table, on cache lines of its own.
type Shard = CachePadded<Mutex<Known>>;

#[derive(Debug, Default)]
struct Known {
    by_number: FxHashMap<InodeNumber, Entry>,
    /// Inodes that the last sweep kept.
    kept: usize,
}

#[derive(Debug)]
struct Entry {
    inode: Arc<Inode>,
    /// Asked for since the last sweep.
    referenced: bool,
}

impl InodeTable {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            group_bits: u32::from(geometry.ag_block_log)
                + u32::from(geometry.inodes_per_block_log()),
        }
    }

    /// A few parts for each group: threads that work in different groups do not meet, and free
    /// mostly memory that they took themselves.
    fn shard(&self, number: InodeNumber) -> &Shard {
        let group = number.0 >> self.group_bits;
        let part = number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.shards[(group as usize * PARTS + part as usize % PARTS) % SHARDS]
    }

    /// The inode of this number, from `load` if it is not in memory.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn get_or_load(
        &self,
        number: InodeNumber,
        load: impl FnOnce() -> Result<InodeState, Error>,
    ) -> Result<Arc<Inode>, Error> {
        let shard = self.shard(number);
        if let Some(entry) = shard.lock().by_number.get_mut(&number) {
            entry.referenced = true;
            return Ok(Arc::clone(&entry.inode));
        }
        // Loaded without the lock: another thread may do the same, and the first one wins.
        let loaded = load()?;
        let mut inodes = shard.lock();
        let gone = inodes.shrink();
        let new = || Entry { inode: Arc::new(RwLock::new(loaded)), referenced: false };
        let inode = Arc::clone(&inodes.by_number.entry(number).or_insert_with(new).inode);
        drop((inodes, gone));
        Ok(inode)
    }

    /// Drops an inode that was freed: whoever still holds it sees that its mode is 0.
    pub fn remove(&self, number: InodeNumber) {
        let gone = self.shard(number).lock().by_number.remove(&number);
        drop(gone);
    }

    /// Adds an inode that was just created.
    pub fn insert(&self, state: InodeState) -> Arc<Inode> {
        let number = state.number;
        let inode = Arc::new(RwLock::new(state));
        let mut inodes = self.shard(number).lock();
        let gone = inodes.shrink();
        inodes.by_number.insert(number, Entry { inode: Arc::clone(&inode), referenced: false });
        drop((inodes, gone));
        inode
    }
}

impl Known {
    /// Takes out what nobody holds and nobody asked for since the last sweep, when there is too
    /// much; to be freed without the lock. Between two sweeps come as many insertions as inodes that
    /// the sweep kept, so these pay for it.
    fn shrink(&mut self) -> Vec<Entry> {
        if self.by_number.len() < IDLE_LIMIT.max(2 * self.kept) {
            return Vec::new();
        }
        let is_idle = |_: &InodeNumber, entry: &mut Entry| {
            !std::mem::take(&mut entry.referenced) && Arc::strong_count(&entry.inode) == 1
        };
        let gone = self.by_number.extract_if(is_idle).map(|(_, entry)| entry).collect();
        self.kept = self.by_number.len();
        gone
    }
}
