//! A live volume with data of files in memory, and tickets for its durability.

use super::budget::Budget;
use super::write::BufferedWrite;
use super::write_back::{Extent, write_back};
use crate::error::Error;
use crate::format::Timestamp;
use crate::inode::{Inode, InodeState};
use crate::log::{Journal, SyncTicket, WriteBack};
use crate::ops::FileEdit;
use crate::units::InodeNumber;
use crate::volume::Volume;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};
use undercroft_block::Batch;

/// How much is kept in memory.
#[derive(Clone, Debug)]
pub struct FilesOptions {
    /// Bytes of files that may be newer in memory than on the device. Whoever writes more waits.
    pub dirty_bytes: u64,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self { dirty_bytes: 64 << 20 }
    }
}

/// The files of a live volume, written through memory. Shared by reference between threads.
///
/// What is written is part of the file at once: whoever reads it through [`ops`](crate::ops) sees
/// it. Operations of [`FileEdit`] write it back before they work. It is durable when a ticket says
/// so, or after [`close`](Self::close). Dropped instead, it loses what was not durable, as a crash
/// does, and tickets that wait are answered with an error.
pub struct Files {
    inner: Arc<Inner>,
}

struct Inner {
    volume: Arc<Volume>,
    journal: Arc<Journal>,
    budget: Arc<Budget>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Files with dirty data.
    dirty: FxHashMap<InodeNumber, Arc<Inode>>,
    /// Files that have space behind their end for writes to come.
    growing: FxHashMap<InodeNumber, Arc<Inode>>,
    /// Files that tickets wait for, in the order of the tickets.
    wanted: Vec<(Arc<Inode>, Extent)>,
    /// Tickets that wait for them.
    tickets: usize,
}

impl Files {
    /// The files of a volume; there is one of these for each.
    ///
    /// # Errors
    /// The volume is not live.
    pub fn new(volume: Arc<Volume>, options: &FilesOptions) -> Result<Self, Error> {
        let Some(journal) = volume.journal().map(Arc::clone) else {
            let what = "it is not open for changes through its journal";
            return Err(Error::ReadOnly(what.into()));
        };
        let inner = Arc::new(Inner {
            volume,
            journal,
            budget: Arc::new(Budget::new(options.dirty_bytes)),
            queue: Mutex::default(),
        });
        let weak: Weak<Inner> = Arc::downgrade(&inner);
        inner.journal.set_files(weak);
        Ok(Self { inner })
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &Arc<Volume> {
        &self.inner.volume
    }

    /// Bytes that are dirty now.
    #[must_use]
    pub fn dirty_bytes(&self) -> u64 {
        self.inner.budget.taken()
    }

    /// Writes the bytes of `memory` in `range` at `offset` of a regular file, in memory. The file
    /// grows if it ends before. Waits while too much is dirty. The caller has no transaction open,
    /// and holds no lock of an inode.
    ///
    /// # Errors
    /// The file would be larger than the format allows; it is no regular file; no space; the blocks
    /// at the ends of the range could not be read; the volume was poisoned.
    pub fn write(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let inner = &*self.inner;
        if range.is_empty() {
            return Ok(());
        }
        let unit = inner.volume.geometry().block_size() as u64;
        let blocks = (offset + range.len() as u64).div_ceil(unit) - offset / unit;
        inner.take_permit(blocks * unit)?;
        let write = || {
            let lock = InodeState::lock_data(inode);
            let write = BufferedWrite {
                volume: &inner.volume,
                inode,
                budget: &inner.budget,
                offset,
                memory,
                range: range.clone(),
                now,
            };
            let result = write.perform();
            drop(lock);
            result
        };
        let mut result = write();
        if matches!(result, Err(Error::NoSpace { .. })) {
            // What is dirty has set aside more than it may need, and files may have more than they
            // will use.
            inner.write_back_all()?;
            inner.trim_all()?;
            inner.volume.sync()?;
            result = write();
        }
        if result.is_ok() {
            let number = inode.read().number;
            inner.queue.lock().dirty.entry(number).or_insert_with(|| Arc::clone(inode));
        }
        // Behind the queue: whoever waits for a permit looks there when it wakes.
        inner.budget.settle(blocks * unit, result.as_ref().copied().unwrap_or(0));
        result?;
        if inner.budget.is_half_taken() {
            inner.journal.want_write_back();
        }
        Ok(())
    }

    /// Writes past memory: returns when the bytes are on the device and mapped. A ticket drawn
    /// afterwards makes them durable. The bounds are those of [`write`](Self::write).
    ///
    /// # Errors
    /// As for [`write`](Self::write); the device failed.
    pub fn write_direct(
        &self,
        inode: &Arc<Inode>,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let (inner, number) = (&*self.inner, inode.read().number);
        let write =
            || FileEdit::open(&inner.volume, number, now)?.write(offset, memory, range.clone());
        let mut result = write();
        if matches!(result, Err(Error::NoSpace { .. })) {
            inner.trim_all()?;
            inner.volume.sync()?;
            result = write();
        }
        inner.note_growth(inode);
        result
    }

    /// Says that whoever wrote a file will not go on: what it has behind its end for writes to come
    /// is given back, unless that happened before and somebody wrote on. Nothing becomes durable by
    /// this, and nothing has to be: a file that is never given up is trimmed when space runs out,
    /// or by [`trim`](Self::trim), or by [`close`](Self::close).
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub fn release(&self, inode: &Arc<Inode>) -> Result<(), Error> {
        let growth = {
            let mut state = inode.write();
            let (growth, is_dirty) = (state.growth, state.dirty.is_some());
            state.growth.is_open = false;
            state.growth.comes_back |= is_dirty;
            growth
        };
        if growth.comes_back || !growth.has_space {
            return Ok(());
        }
        self.inner.trim_one(inode)
    }

    /// Gives back what files have behind their ends for writes to come.
    ///
    /// # Errors
    /// As for [`release`](Self::release).
    pub fn trim(&self) -> Result<(), Error> {
        self.inner.trim_all()
    }

    /// Starts to make a file durable, data and inode, as it is now; and with it every name and
    /// every other change that was committed before, so the directory of a new file needs no fsync
    /// of its own. What is written later may become durable with it or not. Returns at once; the
    /// ticket tells when it is done. Any number of tickets may wait; a dropped one is cancelled,
    /// which cancels nothing but the report. An O_SYNC write is a write and this.
    pub fn fsync(&self, inode: &Arc<Inode>) -> SyncTicket {
        self.inner.ticket(inode, Extent::All)
    }

    /// As [`fsync`](Self::fsync), without times that nobody needs to read the data. An O_DSYNC
    /// write is a write and this.
    pub fn fdatasync(&self, inode: &Arc<Inode>) -> SyncTicket {
        self.inner.ticket(inode, Extent::Data)
    }

    /// Starts to make everything durable that was written or changed so far, in all files.
    pub fn sync(&self) -> SyncTicket {
        let inner = &*self.inner;
        let mut queue = inner.queue.lock();
        let files: Vec<_> = queue.dirty.values().cloned().collect();
        queue.wanted.extend(files.into_iter().map(|inode| (inode, Extent::All)));
        inner.promise(&mut queue)
    }

    /// Makes a file durable, as [`fsync`](Self::fsync) does, in this thread. Of several threads that
    /// wait, one does the work for all.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fsync_and_wait(&self, inode: &Arc<Inode>) -> Result<(), Error> {
        self.inner.write_back_one(inode, Extent::All)?;
        self.inner.volume.sync()
    }

    /// As [`fsync_and_wait`](Self::fsync_and_wait), for data.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fdatasync_and_wait(&self, inode: &Arc<Inode>) -> Result<(), Error> {
        self.inner.write_back_one(inode, Extent::Data)?;
        self.inner.volume.sync()
    }

    /// Makes everything durable in this thread.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn sync_and_wait(&self) -> Result<(), Error> {
        self.inner.write_back_all()?;
        self.inner.volume.sync()
    }

    /// Writes everything back and [closes](Volume::close) the volume. Tickets that wait are answered
    /// before it returns.
    ///
    /// # Errors
    /// The device failed. The journal holds what was durable before.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.write_back_all()?;
        self.inner.trim_all()?;
        self.inner.volume.close()
    }
}

impl Inner {
    fn ticket(&self, inode: &Arc<Inode>, extent: Extent) -> SyncTicket {
        if inode.read().dirty.is_none() {
            // All of it was committed.
            return self.journal.force();
        }
        let mut queue = self.queue.lock();
        queue.wanted.push((Arc::clone(inode), extent));
        self.promise(&mut queue)
    }

    fn promise(&self, queue: &mut Queue) -> SyncTicket {
        queue.tickets += 1;
        // Under the lock of the queue, so that promises are in the order of the queue.
        let ticket = self.journal.promise();
        self.journal.want_write_back();
        ticket
    }

    /// Waits for a permit to make `bytes` bytes dirty.
    fn take_permit(&self, bytes: u64) -> Result<(), Error> {
        while !self.budget.try_take(bytes) {
            let files = self.dirty_files();
            if files.is_empty() {
                // Others are writing them back, and give back what they had whatever happens.
                self.budget.wait();
            } else {
                self.write_back(&files)?;
            }
        }
        Ok(())
    }

    /// Files with dirty data in the order of their numbers, which is mostly that of their making.
    fn dirty_files(&self) -> Vec<(Arc<Inode>, Extent)> {
        let mut files: Vec<_> = {
            let queue = self.queue.lock();
            queue.dirty.iter().map(|(number, inode)| (*number, Arc::clone(inode))).collect()
        };
        files.sort_unstable_by_key(|(number, _)| *number);
        files.into_iter().map(|(_, inode)| (inode, Extent::All)).collect()
    }

    fn write_back(&self, files: &[(Arc<Inode>, Extent)]) -> Result<(), Error> {
        let result = write_back(&self.volume, files.iter().map(|(inode, extent)| (inode, *extent)));
        let mut queue = self.queue.lock();
        for (inode, _) in files {
            let state = inode.read();
            if state.dirty.is_none() {
                queue.dirty.remove(&state.number);
            }
            if state.growth.has_space {
                queue.growing.entry(state.number).or_insert_with(|| Arc::clone(inode));
            }
        }
        result
    }

    fn note_growth(&self, inode: &Arc<Inode>) {
        let state = inode.read();
        if state.growth.has_space {
            self.queue.lock().growing.insert(state.number, Arc::clone(inode));
        }
    }

    fn trim_all(&self) -> Result<(), Error> {
        let growing: Vec<_> = self.queue.lock().growing.values().cloned().collect();
        growing.iter().try_for_each(|inode| self.trim_one(inode))
    }

    fn trim_one(&self, inode: &Arc<Inode>) -> Result<(), Error> {
        let lock = InodeState::lock_data(inode);
        let number = inode.read().number;
        let now = Timestamp::default();
        let edit = FileEdit::plugged(&self.volume, Arc::clone(inode), lock, now, Batch::new());
        match edit.and_then(|mut edit| edit.trim()) {
            // Removed meanwhile.
            Ok(()) | Err(Error::Stale { .. }) => {}
            other => return other,
        }
        self.queue.lock().growing.remove(&number);
        Ok(())
    }

    fn write_back_one(&self, inode: &Arc<Inode>, extent: Extent) -> Result<(), Error> {
        if inode.read().dirty.is_none() {
            return Ok(());
        }
        self.write_back(&[(Arc::clone(inode), extent)])
    }

    fn write_back_all(&self) -> Result<(), Error> {
        self.write_back(&self.dirty_files())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.journal.break_promises();
    }
}

impl WriteBack for Inner {
    fn write_back(&self) {
        let (mut files, tickets) = {
            let mut queue = self.queue.lock();
            (std::mem::take(&mut queue.wanted), std::mem::take(&mut queue.tickets))
        };
        if self.budget.is_half_taken() {
            files.extend(self.dirty_files());
        }
        // A failure has poisoned the volume, and whoever waits was told.
        if Self::write_back(self, &files).is_ok() {
            self.journal.keep_promises(tickets);
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("budget", &self.inner.budget).finish_non_exhaustive()
    }
}
