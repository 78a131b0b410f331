//! Inodes that are in memory.

use super::{Inode, InodeState};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::units::InodeNumber;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

/// Independent parts of the table, so that threads seldom meet.
const SHARDS: usize = 64;

/// Parts of one group.
const PARTS: usize = 4;

/// Inodes of a part that are kept without a holder. Their content is in their cluster buffers too:
/// an inode is stored by the commit that changed it, so dropping one loses nothing.
const IDLE_LIMIT: usize = 256;

/// All inodes in memory, by number.
#[derive(Debug)]
pub(crate) struct InodeTable {
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
    /// How often inodes went.
    evictions: u64,
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

    /// The inode of this number, from `load` if it is not in memory; more than once if others go
    /// from memory meanwhile.
    ///
    /// # Errors
    /// Those of `load`.
    pub(crate) fn get_or_load(
        &self,
        number: InodeNumber,
        load: impl Fn() -> Result<InodeState, Error>,
    ) -> Result<Arc<Inode>, Error> {
        let shard = self.shard(number);
        loop {
            let evictions = {
                let mut inodes = shard.lock();
                if let Some(entry) = inodes.by_number.get_mut(&number) {
                    entry.referenced = true;
                    return Ok(Arc::clone(&entry.inode));
                }
                inodes.evictions
            };
            // Loaded without the lock: another thread may do the same, and the first one wins.
            let loaded = load()?;
            let inodes = shard.lock();
            if let Some(entry) = inodes.by_number.get(&number) {
                return Ok(Arc::clone(&entry.inode));
            }
            // It may have been loaded since by another thread, changed and dropped: then this copy
            // is old.
            if inodes.evictions == evictions {
                return Ok(insert(inodes, number, Arc::new(Inode::new(loaded))));
            }
        }
    }

    /// Whether the inode of this number is in memory, and so in use.
    pub(crate) fn knows(&self, number: InodeNumber) -> bool {
        self.shard(number).lock().by_number.contains_key(&number)
    }

    /// Drops an inode that was freed: its holders see that its mode is 0.
    pub(crate) fn remove(&self, number: InodeNumber) {
        self.take_out(number, |_| true);
    }

    /// Drops an inode that is stored, unless it has a holder.
    pub(crate) fn release(&self, number: InodeNumber) {
        self.take_out(number, |inode| Arc::strong_count(inode) == 1);
    }

    /// Takes an inode out, if it is there and `may_go`; it is freed without the lock.
    fn take_out(&self, number: InodeNumber, may_go: impl FnOnce(&Arc<Inode>) -> bool) {
        let mut inodes = self.shard(number).lock();
        // A copy that another thread loads now is not taken in, since this one may have changed.
        inodes.evictions += 1;
        let gone = match inodes.by_number.entry(number) {
            Slot::Occupied(slot) if may_go(&slot.get().inode) => Some(slot.remove()),
            _ => None,
        };
        drop((inodes, gone));
    }

    /// Adds an inode that was just created.
    pub(crate) fn insert(&self, number: InodeNumber, inode: &Arc<Inode>) {
        insert(self.shard(number).lock(), number, Arc::clone(inode));
    }
}

/// Adds an inode to its part; inodes dropped for it are freed without the lock.
fn insert(mut inodes: MutexGuard<'_, Known>, number: InodeNumber, inode: Arc<Inode>) -> Arc<Inode> {
    let gone = inodes.shrink();
    inodes.by_number.insert(number, Entry { inode: Arc::clone(&inode), referenced: false });
    drop((inodes, gone));
    inode
}

impl Known {
    /// When there are too many, takes out inodes that are not held and were not used since the last
    /// sweep. The caller frees them without the lock. Between two sweeps come as many insertions as
    /// inodes that the sweep kept, so these pay for it.
    fn shrink(&mut self) -> Vec<Entry> {
        if self.by_number.len() < IDLE_LIMIT.max(2 * self.kept) {
            return Vec::new();
        }
        let is_idle = |_: &InodeNumber, entry: &mut Entry| {
            !std::mem::take(&mut entry.referenced) && Arc::strong_count(&entry.inode) == 1
        };
        let gone: Vec<_> = self.by_number.extract_if(is_idle).map(|(_, entry)| entry).collect();
        self.kept = self.by_number.len();
        self.evictions += u64::from(!gone.is_empty());
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::InodeCore;
    use crate::inode::Fork;
    use crate::mkfs::{MkfsOptions, plan};
    use std::cell::Cell;
    use uuid::Uuid;

    const NUMBER: InodeNumber = InodeNumber(128);

    #[test]
    fn only_an_inode_without_a_holder_is_released() {
        let table = table();
        let held = table.get_or_load(NUMBER, || Ok(state(NUMBER, 1))).unwrap();
        table.release(NUMBER);
        assert!(table.knows(NUMBER));
        drop(held);
        table.release(NUMBER);
        assert!(!table.knows(NUMBER));
        table.release(NUMBER);
    }

    fn state(number: InodeNumber, size: u64) -> InodeState {
        let core = InodeCore { number, size, ..InodeCore::default() };
        InodeState::new(core, Fork::empty(), None)
    }

    fn table() -> InodeTable {
        let options = MkfsOptions::new(512 << 20, Uuid::from_u128(1));
        InodeTable::new(&plan(&options).unwrap().geometry())
    }

    /// Gets an inode as a thread that is slow to load it: `meanwhile` others load it, change its
    /// size to 2 and store that. Returns the size that the thread sees at last.
    fn size_after(table: &InodeTable, meanwhile: impl Fn()) -> u64 {
        let (stored, loads) = (Cell::new(1), Cell::new(0));
        let load = || Ok(state(NUMBER, stored.get()));
        let slow = || {
            let loaded = load();
            loads.set(loads.get() + 1);
            if loads.get() == 1 {
                table.get_or_load(NUMBER, load).unwrap().write().core.size = 2;
                stored.set(2);
                meanwhile();
            }
            loaded
        };
        let inode = table.get_or_load(NUMBER, slow).unwrap();
        inode.read().core.size
    }

    fn others(table: &InodeTable) -> impl Iterator<Item = InodeNumber> {
        let others = (NUMBER.0 + 1..).map(InodeNumber);
        others.filter(|other| std::ptr::eq(table.shard(*other), table.shard(NUMBER)))
    }

    #[test]
    fn what_came_changed_and_went_is_loaded_again() {
        let table = table();
        let meanwhile = || {
            for other in others(&table).take(2 * IDLE_LIMIT) {
                table.insert(other, &Arc::new(Inode::new(state(other, 0))));
            }
            assert!(!table.shard(NUMBER).lock().by_number.contains_key(&NUMBER), "still here");
        };
        assert_eq!(size_after(&table, meanwhile), 2);
    }

    #[test]
    fn what_came_meanwhile_does_not_go_for_what_was_loaded_before() {
        let table = table();
        for other in others(&table).take(IDLE_LIMIT - 1) {
            table.insert(other, &Arc::new(Inode::new(state(other, 0))));
        }
        assert_eq!(size_after(&table, || ()), 2);
    }
}
