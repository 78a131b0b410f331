//! Inodes that are in memory.

use super::{Inode, InodeState};
use crate::error::Error;
use crate::units::InodeNumber;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Inodes kept although nobody holds them. Their content is in their cluster buffers too: an inode
/// is stored by the commit that changed it, so dropping one loses nothing.
const IDLE_LIMIT: usize = 4096;

/// All inodes in memory, by number.
#[derive(Debug, Default)]
pub struct InodeTable {
    inodes: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_number: FxHashMap<InodeNumber, Arc<Inode>>,
    /// Inodes that somebody held at the last sweep.
    held: usize,
}

impl InodeTable {
    /// The inode of this number, from `load` if it is not in memory.
    ///
    /// # Errors
    /// Those of `load`.
    pub fn get_or_load(
        &self,
        number: InodeNumber,
        load: impl FnOnce() -> Result<InodeState, Error>,
    ) -> Result<Arc<Inode>, Error> {
        if let Some(inode) = self.inodes.lock().by_number.get(&number) {
            return Ok(Arc::clone(inode));
        }
        // Loaded without the lock: another thread may do the same, and the first one wins.
        let loaded = load()?;
        let mut inodes = self.inodes.lock();
        inodes.shrink();
        Ok(Arc::clone(
            inodes.by_number.entry(number).or_insert_with(|| Arc::new(RwLock::new(loaded))),
        ))
    }

    /// Drops an inode that was freed: whoever still holds it sees that its mode is 0.
    pub fn remove(&self, number: InodeNumber) {
        self.inodes.lock().by_number.remove(&number);
    }

    /// Adds an inode that was just created.
    pub fn insert(&self, state: InodeState) -> Arc<Inode> {
        let number = state.number;
        let inode = Arc::new(RwLock::new(state));
        let mut inodes = self.inodes.lock();
        inodes.shrink();
        inodes.by_number.insert(number, Arc::clone(&inode));
        inode
    }
}

impl Known {
    /// Drops what nobody holds when there is too much. Between two sweeps come as many insertions
    /// as inodes that the sweep could not drop, so these pay for it.
    fn shrink(&mut self) {
        if self.by_number.len() >= IDLE_LIMIT.max(2 * self.held) {
            self.by_number.retain(|_, inode| Arc::strong_count(inode) > 1);
            self.held = self.by_number.len();
        }
    }
}
