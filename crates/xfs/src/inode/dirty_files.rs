//! The files of a volume that have something to be written back or given back.
//!
//! The lists own them: an inode on a list stays in memory, and leaves it when it is freed. They are
//! told apart by their place in memory, for numbers are used again. The lists have a lock of their own, under which no other is taken;
//! it may be taken under the lock of an inode.

use super::reclaims::Reclaims;
use super::{Budget, Inode, InodeState};
use crate::log::UnsequencedTicket;
use crate::rank;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use undercroft_locks::OrderedMutex;

/// Where an inode is in memory: no other is there as long as it has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileKey(usize);

/// Some files, and what of each is wanted.
pub(crate) type Files = SmallVec<[(Arc<Inode>, SyncScope); 1]>;

/// What the file of a ticket is to be complete in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SyncScope {
    /// Data and inode.
    All,
    /// Data, and its state for readers.
    Data,
}

/// The lists, the budget of all of them, and what goes without being listed.
pub(crate) struct DirtyFiles {
    pub(crate) budget: Arc<Budget>,
    pub(crate) reclaims: Reclaims,
    lists: OrderedMutex<Lists, { rank::LISTS }>,
}

#[derive(Default)]
struct Lists {
    /// Files with dirty data.
    dirty: FxHashMap<FileKey, Arc<Inode>>,
    /// Files that have space behind their end for writes to come.
    growing: FxHashMap<FileKey, Arc<Inode>>,
    /// Inodes whose time of access is newer than in their cluster.
    accessed: FxHashMap<FileKey, Arc<Inode>>,
    /// What tickets wait for, in the order of the tickets.
    wanted: Vec<Wanted>,
}

/// One ticket, and the files that it waits for.
pub(crate) struct Wanted {
    pub(crate) files: Files,
    pub(crate) unsequenced: UnsequencedTicket,
}

pub(crate) fn file_key(inode: &InodeState) -> FileKey {
    FileKey(std::ptr::from_ref(inode).addr())
}

impl DirtyFiles {
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            budget: Arc::new(Budget::new(bytes)),
            reclaims: Reclaims::default(),
            lists: OrderedMutex::default(),
        }
    }

    /// Bytes that are dirty.
    pub(crate) fn bytes(&self) -> u64 {
        self.budget.taken()
    }

    /// Lists a file that has dirty data. The caller has locked its data.
    pub(crate) fn add_dirty(&self, key: FileKey, inode: &Arc<Inode>) {
        self.lists.lock().dirty.entry(key).or_insert_with(|| Arc::clone(inode));
    }

    /// Lists a file by its state now, if it has space behind its end.
    pub(crate) fn note_growth(&self, inode: &Arc<Inode>) {
        let state = inode.read();
        if state.memory.growth.has_space {
            self.lists.lock().growing.entry(file_key(&state)).or_insert_with(|| Arc::clone(inode));
        }
    }

    /// Lists these files by their state now.
    pub(crate) fn update(&self, files: &[(Arc<Inode>, SyncScope)]) {
        for (inode, _) in files {
            let state = inode.read();
            let mut lists = self.lists.lock();
            if state.memory.dirty.is_none() {
                lists.dirty.remove(&file_key(&state));
            }
            if state.memory.growth.has_space {
                lists.growing.entry(file_key(&state)).or_insert_with(|| Arc::clone(inode));
            }
        }
    }

    /// Lists an inode that was read, which the caller has locked; returns how many there are.
    pub(crate) fn add_accessed(&self, key: FileKey, inode: &Arc<Inode>) -> usize {
        let mut lists = self.lists.lock();
        lists.accessed.insert(key, Arc::clone(inode));
        lists.accessed.len()
    }

    /// Takes the inodes that were read off their list.
    pub(crate) fn take_accessed(&self) -> Vec<Arc<Inode>> {
        let accessed = std::mem::take(&mut self.lists.lock().accessed);
        let mut accessed: Vec<_> = accessed.into_values().collect();
        accessed.sort_by_cached_key(|inode| inode.read().number);
        accessed
    }

    /// Forgets an inode that is freed now, whose lock the caller has.
    pub(crate) fn forget(&self, inode: &InodeState) {
        let (mut lists, key) = (self.lists.lock(), file_key(inode));
        let gone =
            [lists.dirty.remove(&key), lists.growing.remove(&key), lists.accessed.remove(&key)];
        drop(lists);
        drop(gone);
    }

    /// A file has given back the space behind its end.
    pub(crate) fn forget_growth(&self, key: FileKey) {
        let gone = self.lists.lock().growing.remove(&key);
        drop(gone);
    }

    /// Files with space behind their ends.
    pub(crate) fn growing(&self) -> Vec<Arc<Inode>> {
        self.lists.lock().growing.values().cloned().collect()
    }

    /// Files with dirty data in the order of their numbers, which is mostly that of their making.
    pub(crate) fn dirty(&self) -> Files {
        let mut files: Vec<_> = {
            let lists = self.lists.lock();
            lists.dirty.values().cloned().collect()
        };
        files.sort_by_cached_key(|inode| inode.read().number);
        files.into_iter().map(|inode| (inode, SyncScope::All)).collect()
    }

    /// Has these files written back for a ticket.
    pub(crate) fn want(&self, files: Files, unsequenced: UnsequencedTicket) {
        self.lists.lock().wanted.push(Wanted { files, unsequenced });
    }

    /// What tickets wait for, which is the caller's to write back.
    pub(crate) fn take_wanted(&self) -> Vec<Wanted> {
        std::mem::take(&mut self.lists.lock().wanted)
    }
}

impl fmt::Debug for DirtyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirtyFiles").field("budget", &self.budget).finish_non_exhaustive()
    }
}
