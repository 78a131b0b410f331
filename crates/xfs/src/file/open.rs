//! An open file.

use super::edit::FileEdit;
use crate::error::Error;
use crate::format::Timestamp;
use crate::inode::{FileLocks, Inode, InodeGuard, InodeState};
use crate::read_ahead::Pieces;
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// One opening of a file: to read it, to change its data, to make it durable. Shared by reference
/// between threads.
///
/// While a file is open it is not freed, even without names. When the last opening of it is
/// dropped, space behind its end that was taken for writes to come is given back, and a file that
/// has no name any more is freed, in the thread that drops it. [`close`](Self::close) returns
/// errors of that.
///
/// Any type of file can be open; what reads or changes data is for regular files.
pub struct OpenFile {
    pub(super) volume: Arc<Volume>,
    pub(super) inode: Arc<Inode>,
    pub(super) locks: Arc<FileLocks>,
    number: InodeNumber,
    generation: u32,
    /// Losses of data that it was told of.
    pub(super) known_losses: AtomicU64,
    /// Not let go of yet.
    pub(super) is_open: bool,
    /// Made when something is read ahead.
    pub(super) ahead: OnceLock<Arc<Pieces>>,
}

impl OpenFile {
    /// Opens the file of this number, which was found in a directory of the volume.
    ///
    /// # Errors
    /// [`Error::Stale`] if there is none, or none any more; it is damaged; the device failed.
    pub fn open(volume: &Arc<Volume>, number: InodeNumber) -> Result<Self, Error> {
        Self::open_if(volume, number, |_| true)
    }

    /// Opens the file of this number and generation. A number kept from before may be another
    /// file's by now.
    ///
    /// # Errors
    /// As [`open`](Self::open); the file is another one.
    pub fn open_handle(
        volume: &Arc<Volume>,
        number: InodeNumber,
        generation: u32,
    ) -> Result<Self, Error> {
        if !volume.is_inode_in_use(number)? {
            return Err(Error::Stale { inode: number });
        }
        Self::open_if(volume, number, |inode| inode.core.generation == generation)
    }

    fn open_if(
        volume: &Arc<Volume>,
        number: InodeNumber,
        is_it: impl Fn(&InodeState) -> bool,
    ) -> Result<Self, Error> {
        Self::open_inode_if(volume, &volume.inode(number)?, is_it)
    }

    /// Opens the file of an inode in memory, even if its number is another file's by now.
    ///
    /// # Errors
    /// [`Error::Stale`] if it was removed.
    pub fn open_inode(volume: &Arc<Volume>, inode: &Arc<Inode>) -> Result<Self, Error> {
        Self::open_inode_if(volume, inode, |_| true)
    }

    fn open_inode_if(
        volume: &Arc<Volume>,
        inode: &Arc<Inode>,
        is_it: impl Fn(&InodeState) -> bool,
    ) -> Result<Self, Error> {
        let mut state = InodeGuard::new(inode);
        // A file without a name that is not open is being freed or waits for that.
        if state.is_gone() || !is_it(&state) {
            return Err(Error::Stale { inode: state.number });
        }
        Ok(Self::of(volume, &mut state))
    }

    /// Opens a file that is locked and in use.
    pub(crate) fn of(volume: &Arc<Volume>, state: &mut InodeGuard) -> Self {
        volume.register();
        state.memory.opens += 1;
        Self {
            volume: Arc::clone(volume),
            inode: state.inode(),
            locks: Arc::clone(state.locks()),
            number: state.number,
            generation: state.core.generation,
            known_losses: AtomicU64::new(state.memory.losses.known()),
            is_open: true,
            ahead: OnceLock::new(),
        }
    }

    /// The volume.
    #[must_use]
    pub fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    /// Number of the inode.
    #[must_use]
    pub fn number(&self) -> InodeNumber {
        self.number
    }

    /// Generation of the inode: number and generation together are never used again.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The inode.
    #[must_use]
    pub fn inode(&self) -> &Arc<Inode> {
        &self.inode
    }

    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.inode.read().core.size
    }

    /// Begins a change of the data at the time `now`, if that is to be seen, on the device: dirty data is written back
    /// first.
    pub(super) fn edit(&self, now: Option<Timestamp>) -> Result<FileEdit<'_>, Error> {
        FileEdit::begin_on(&self.volume, &self.inode, self.locks.lock_data(), now)
    }

    /// Lets go of the file, as dropping it does, and tells of errors.
    ///
    /// # Errors
    /// A damaged structure; the device failed. Space that was to be given back is given back when
    /// the volume is replayed or closed.
    pub fn close(mut self) -> Result<(), Error> {
        self.let_go()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // No caller is there to be told of an error; one that matters has made the volume
        // read-only.
        let _ = self.let_go();
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile")
            .field("number", &self.number)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
