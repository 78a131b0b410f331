//! Listings of directories.

use crate::{FileSystem, Metadata, Nodes};
use std::ops::Range;
use std::sync::Arc;
use undercroft_xfs::format::{EntryType, FileType};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ops};

/// Entries that are taken from a directory at a time.
const BATCH: usize = 128;

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name; a listing starts with `.` and `..`.
    pub name: &'a [u8],
    /// Number of the inode.
    pub number: InodeNumber,
    /// Kind of file, where the directory records it.
    pub kind: Option<FileType>,
    /// Cookie of a listing that goes on behind this entry.
    pub next: u64,
}

impl Nodes<'_> {
    /// Calls `visit` for the entries of a directory from `cookie` on until it returns `false`: 0 is
    /// the start, others belong to entries. Returns the cookie to go on at: that of the last entry
    /// visited, or one behind all. A name that stays is listed once, even if others change between
    /// two calls.
    ///
    /// No lock is held while `visit` runs.
    ///
    /// # Errors
    /// It is no directory, or gone; it is damaged; the device failed.
    pub fn readdir(
        &self,
        directory: InodeNumber,
        cookie: u64,
        mut visit: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<u64, Error> {
        let directory = self.fs.inode(directory)?;
        self.fs.list(&directory, cookie, |batch| {
            let stopped = batch.iter().find(|entry| !visit(entry));
            Ok(stopped.map(|entry| entry.next))
        })
    }

    /// As [`readdir`](Self::readdir), with the metadata of each file. Files that are removed
    /// meanwhile are left out.
    ///
    /// # Errors
    /// As [`readdir`](Self::readdir); a file is damaged.
    pub fn readdir_plus(
        &self,
        directory: InodeNumber,
        cookie: u64,
        mut visit: impl FnMut(&Entry<'_>, &Metadata) -> bool,
    ) -> Result<u64, Error> {
        let directory = self.fs.inode(directory)?;
        self.fs.list(&directory, cookie, |batch| {
            self.fs.prefetch(batch);
            for entry in batch.iter() {
                let Some(inode) = self.fs.listed(&directory, batch, &entry)? else { continue };
                if !visit(&entry, &self.fs.metadata_of(&inode)) {
                    return Ok(Some(entry.next));
                }
            }
            Ok(None)
        })
    }
}

impl FileSystem {
    fn list(
        &self,
        directory: &Arc<Inode>,
        mut cookie: u64,
        mut visit: impl FnMut(&Batch) -> Result<Option<u64>, Error>,
    ) -> Result<u64, Error> {
        self.note_read(directory);
        loop {
            let batch = self.batch(directory, cookie)?;
            if batch.entries.is_empty() {
                return Ok(batch.next);
            }
            if let Some(stopped) = visit(&batch)? {
                return Ok(stopped);
            }
            cookie = batch.next;
        }
    }

    /// Begins to read the inodes of these entries.
    pub(crate) fn prefetch(&self, batch: &Batch) {
        self.volume().prefetch_inodes(batch.entries.iter().map(|entry| entry.number));
    }

    /// The inode of an entry of a batch; `None` if its name is gone. As long as no name of the
    /// directory has changed, the number is that of the file; then the name tells, as another file
    /// may have the number.
    pub(crate) fn listed(
        &self,
        directory: &Inode,
        batch: &Batch,
        entry: &Entry<'_>,
    ) -> Result<Option<Arc<Inode>>, Error> {
        let listed = {
            let directory = directory.read();
            let is_as_listed = directory.core.changecount == batch.changecount;
            is_as_listed.then(|| self.volume().inode(entry.number)).transpose()
        };
        match listed.map_err(Error::into_damage)? {
            Some(inode) if !inode.read().is_gone() => Ok(Some(inode)),
            _ => self.child(directory, entry.name),
        }
    }

    /// The next entries of a directory.
    pub(crate) fn batch(&self, directory: &Inode, cookie: u64) -> Result<Batch, Error> {
        let directory = directory.read();
        let mut batch = Batch { changecount: directory.core.changecount, ..Batch::default() };
        let from = Position::from_raw(cookie);
        let next = ops::all_entries(self.volume(), &directory, from, |entry| {
            let start = batch.names.len();
            batch.names.extend_from_slice(entry.name);
            batch.entries.push(Item {
                name: start..batch.names.len(),
                number: entry.inode,
                kind: kind(entry.ftype),
                next: entry.next.to_raw(),
            });
            batch.entries.len() < BATCH
        })?;
        batch.next = next.to_raw();
        Ok(batch)
    }
}

/// Some entries, by value.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    names: Vec<u8>,
    entries: Vec<Item>,
    next: u64,
    /// Changes of the directory before they were listed.
    changecount: u64,
}

#[derive(Debug)]
struct Item {
    name: Range<usize>,
    number: InodeNumber,
    kind: Option<FileType>,
    next: u64,
}

impl Batch {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        (0..self.entries.len()).filter_map(|index| self.get(index))
    }

    pub(crate) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let Item { name, number, kind, next } = self.entries.get(index)?;
        Some(Entry { name: &self.names[name.clone()], number: *number, kind: *kind, next: *next })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Cookie behind the last.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

fn kind(entry: EntryType) -> Option<FileType> {
    Some(match entry {
        EntryType::Unknown => return None,
        EntryType::Regular => FileType::Regular,
        EntryType::Directory => FileType::Directory,
        EntryType::CharDevice | EntryType::Whiteout => FileType::Character,
        EntryType::BlockDevice => FileType::Block,
        EntryType::Fifo => FileType::Fifo,
        EntryType::Socket => FileType::Socket,
        EntryType::Symlink => FileType::Symlink,
    })
}
