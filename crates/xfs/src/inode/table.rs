//! Inodes that are in memory.

use super::{Inode, InodeState};
use crate::error::Error;
use crate::units::InodeNumber;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Independent parts of the table, so that threads seldom meet.
const SHARDS: usize = 16;

/// Inodes of a part that are kept although nobody holds them. Their content is in their cluster
/// buffers too: an inode is stored by the commit that changed it, so dropping one loses nothing.
const IDLE_LIMIT: usize = 1024;

/// All inodes in memory, by number.
#[derive(Debug, Default)]
pub struct InodeTable {
    shards: [Mutex<Known>; SHARDS],
}

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
    fn shard(&self, number: InodeNumber) -> &Mutex<Known> {
        // Numbers of neighbours differ in their lowest bits, of groups in their highest.
        let hash = number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(hash >> 60) as usize % SHARDS]
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
        inodes.shrink();
        let new = || Entry { inode: Arc::new(RwLock::new(loaded)), referenced: false };
        Ok(Arc::clone(&inodes.by_number.entry(number).or_insert_with(new).inode))
    }

    /// Drops an inode that was freed: whoever still holds it sees that its mode is 0.
    pub fn remove(&self, number: InodeNumber) {
        self.shard(number).lock().by_number.remove(&number);
    }

    /// Adds an inode that was just created.
    pub fn insert(&self, state: InodeState) -> Arc<Inode> {
        let number = state.number;
        let inode = Arc::new(RwLock::new(state));
        let mut inodes = self.shard(number).lock();
        inodes.shrink();
        inodes.by_number.insert(number, Entry { inode: Arc::clone(&inode), referenced: false });
        inode
    }
}

impl Known {
    /// Drops what nobody holds and nobody asked for since the last sweep, when there is too much.
    /// Between two sweeps come as many insertions as inodes that the sweep kept, so these pay for
    /// it.
    fn shrink(&mut self) {
        if self.by_number.len() < IDLE_LIMIT.max(2 * self.kept) {
            return;
        }
        self.by_number.retain(|_, entry| {
            std::mem::take(&mut entry.referenced) || Arc::strong_count(&entry.inode) > 1
        });
        self.kept = self.by_number.len();
    }
}
