//! The files of a volume that have something to be written back or given back.
//!
//! The lists own them: an inode on a list stays in memory, and leaves it when it is freed. They are
//! told apart by their place in memory, for numbers are used again. The lists have a lock of their own, under which no other is taken;
//! it may be taken under the lock of an inode.

use super::write_back::{Extent, write_back};
use crate::error::Error;
use crate::inode::{Budget, Inode, InodeState};
use crate::log::{Promise, Refusal, WriteBack};
use crate::rank;
use crate::units::InodeNumber;
use crate::volume::Volume;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;
use undercroft_locks::OrderedMutex;

/// Where an inode is in memory: no other is there as long as somebody owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey(usize);

/// Some files, and what of each is wanted.
pub(super) type Files = SmallVec<[(Arc<Inode>, Extent); 1]>;

/// Files whose data was not written, and why.
pub(super) type Failures = FxHashMap<FileKey, Failure>;

/// Why data of a file was not written.
pub(super) struct Failure {
    pub(super) number: InodeNumber,
    /// For whoever waits for a ticket.
    pub(super) what: Arc<str>,
    pub(super) error: Error,
}

/// The lists, and the budget of all of them.
pub(crate) struct DirtyFiles {
    pub(super) budget: Arc<Budget>,
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

/// What one ticket waits for.
struct Wanted {
    files: Files,
    promise: Promise,
}

pub(super) fn key(inode: &InodeState) -> FileKey {
    FileKey(std::ptr::from_ref(inode).addr())
}

impl DirtyFiles {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { budget: Arc::new(Budget::new(bytes)), lists: OrderedMutex::default() }
    }

    /// Bytes that are dirty.
    pub(crate) fn bytes(&self) -> u64 {
        self.budget.taken()
    }

    /// Lists a file that has dirty data. Whoever calls this has locked its data.
    pub(super) fn add_dirty(&self, key: FileKey, inode: &Arc<Inode>) {
        self.lists.lock().dirty.entry(key).or_insert_with(|| Arc::clone(inode));
    }

    /// Lists a file by what it has now, if it has space behind its end.
    pub(super) fn note_growth(&self, inode: &Arc<Inode>) {
        let state = inode.read();
        if state.memory.growth.has_space {
            self.lists.lock().growing.entry(key(&state)).or_insert_with(|| Arc::clone(inode));
        }
    }

    /// Takes files off the lists that have nothing any more.
    fn settle(&self, files: &[(Arc<Inode>, Extent)]) {
        for (inode, _) in files {
            let state = inode.read();
            let mut lists = self.lists.lock();
            if state.memory.dirty.is_none() {
                lists.dirty.remove(&key(&state));
            }
            if state.memory.growth.has_space {
                lists.growing.entry(key(&state)).or_insert_with(|| Arc::clone(inode));
            }
        }
    }

    /// Lists an inode that was read, which the caller has locked; returns how many there are.
    pub(super) fn add_accessed(&self, key: FileKey, inode: &Arc<Inode>) -> usize {
        let mut lists = self.lists.lock();
        lists.accessed.insert(key, Arc::clone(inode));
        lists.accessed.len()
    }

    /// Takes the inodes that were read off their list.
    pub(super) fn take_accessed(&self) -> Vec<Arc<Inode>> {
        let accessed = std::mem::take(&mut self.lists.lock().accessed);
        let mut accessed: Vec<_> = accessed.into_values().collect();
        accessed.sort_by_cached_key(|inode| inode.read().number);
        accessed
    }

    /// Forgets an inode that is freed now, whose lock the caller has.
    pub(crate) fn forget(&self, inode: &InodeState) {
        let (mut lists, key) = (self.lists.lock(), key(inode));
        let gone =
            [lists.dirty.remove(&key), lists.growing.remove(&key), lists.accessed.remove(&key)];
        drop(lists);
        drop(gone);
    }

    /// A file has given back the space behind its end.
    pub(super) fn forget_growth(&self, key: FileKey) {
        let gone = self.lists.lock().growing.remove(&key);
        drop(gone);
    }

    /// Files with space behind their ends.
    pub(super) fn growing(&self) -> Vec<Arc<Inode>> {
        self.lists.lock().growing.values().cloned().collect()
    }

    /// Files with dirty data in the order of their numbers, which is mostly that of their making.
    pub(super) fn dirty(&self) -> Files {
        let mut files: Vec<_> = {
            let lists = self.lists.lock();
            lists.dirty.values().cloned().collect()
        };
        files.sort_by_cached_key(|inode| inode.read().number);
        files.into_iter().map(|inode| (inode, Extent::All)).collect()
    }

    /// Has these files written back for a ticket.
    pub(super) fn want(&self, files: Files, promise: Promise) {
        self.lists.lock().wanted.push(Wanted { files, promise });
    }

    /// Writes these files back.
    ///
    /// # Errors
    /// The files whose data could not be written; all others were.
    pub(super) fn write_back(
        &self,
        volume: &Volume,
        files: &[(Arc<Inode>, Extent)],
    ) -> Result<(), Failures> {
        let failures = write_back(volume, files);
        self.settle(files);
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }

    /// Writes one file back.
    ///
    /// # Errors
    /// Its data could not be written.
    pub(super) fn write_back_one(
        &self,
        volume: &Volume,
        inode: &Arc<Inode>,
        extent: Extent,
    ) -> Result<(), Error> {
        if inode.read().memory.dirty.is_none() {
            return Ok(());
        }
        let files: Files = smallvec![(Arc::clone(inode), extent)];
        self.write_back(volume, &files).map_err(first_error)
    }

    /// Writes everything back.
    ///
    /// # Errors
    /// Data of a file could not be written.
    pub(crate) fn write_back_all(&self, volume: &Volume) -> Result<(), Error> {
        self.write_back(volume, &self.dirty()).map_err(first_error)
    }
}

pub(super) fn first_error(failures: Failures) -> Error {
    let first = failures.into_values().min_by_key(|failure| failure.number);
    first.expect("a list of failures is not empty").error
}

impl WriteBack for Volume {
    fn write_back(&self) -> Vec<Promise> {
        let lists = self.files();
        let wanted = std::mem::take(&mut lists.lists.lock().wanted);
        let mut files: Files = wanted.iter().flat_map(|wanted| wanted.files.clone()).collect();
        if lists.budget.is_half_taken() {
            files.extend(lists.dirty());
        }
        let failures = lists.write_back(self, &files).err().unwrap_or_default();
        let mut kept = Vec::with_capacity(wanted.len());
        for Wanted { files, promise } in wanted {
            match refusal(&files, &failures) {
                Some(refusal) => promise.refuse(refusal),
                None => kept.push(promise),
            }
        }
        kept
    }
}

/// Why a ticket for these files cannot be answered well, if so.
fn refusal(files: &Files, failures: &Failures) -> Option<Refusal> {
    if failures.is_empty() {
        return None;
    }
    files.iter().find_map(|(inode, _)| {
        let key = key(&inode.read());
        let failure = failures.get(&key)?;
        Some(Refusal::File(failure.number, Arc::clone(&failure.what)))
    })
}

impl fmt::Debug for DirtyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirtyFiles").field("budget", &self.budget).finish_non_exhaustive()
    }
}
