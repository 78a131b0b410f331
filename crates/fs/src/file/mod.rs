//! An open file.

mod allocate;
mod copy;
mod map;
mod privileges;
mod stream;

pub use allocate::Allocation;
pub use map::FileExtent;
pub use privileges::Writer;

use crate::{FileSystem, Metadata};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::Buffer;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, SyncTicket, WriteTerms};

/// One opening of a file, of any kind; what reads or changes data is for regular files. Shared by
/// reference between threads.
///
/// While it is open the file is not freed, even without names, and its number stays its own.
/// Written data is part of the file at once, and durable when a ticket says so.
///
/// It is a stream of the standard library, too ([`Read`](std::io::Read), [`Write`](std::io::Write),
/// [`Seek`](std::io::Seek)), from its start.
pub struct File {
    open: OpenFile,
    /// Where the next byte of the stream is.
    position: u64,
    /// Dropped last: the last handle closes the volume.
    file_system: FileSystem,
}

impl File {
    pub(crate) fn new(file_system: FileSystem, open: OpenFile) -> Self {
        Self { open, position: 0, file_system }
    }

    /// The file system.
    #[must_use]
    pub fn file_system(&self) -> &FileSystem {
        &self.file_system
    }

    /// The opening below.
    #[must_use]
    pub fn open_file(&self) -> &OpenFile {
        &self.open
    }

    /// Number of the inode.
    #[must_use]
    pub fn number(&self) -> InodeNumber {
        self.open.number()
    }

    /// Generation of the inode.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.open.generation()
    }

    /// The metadata of the file.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.file_system.metadata_of(self.open.inode())
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.open.size()
    }

    /// Fills `bytes` with the content of the file from `offset` on; returns how many bytes that
    /// were: fewer than asked for at the end of the file, 0 behind it.
    ///
    /// # Errors
    /// It is no regular file; the mapping is damaged; the device failed.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        let read = self.open.read(offset, bytes)?;
        if !bytes.is_empty() {
            self.note_access();
        }
        Ok(read)
    }

    /// As [`read_at`](Self::read_at), into memory that devices take: whole blocks come without a copy.
    /// Bytes behind those that were read are not the same afterwards. The time of access stays:
    /// [`note_access`](Self::note_access) sets it.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); the memory is gone then.
    pub fn read_buffer(&self, offset: u64, memory: Buffer) -> Result<(Buffer, usize), Error> {
        self.open.read_buffer(offset, memory)
    }

    /// Sets the time of access, if it is due.
    pub fn note_access(&self) {
        self.file_system.note_read(self.open.inode());
    }

    /// As [`read_at`](Self::read_at), and all of `bytes` must be filled.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); [`Error::EndOfFile`] if the file ends before.
    pub fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.read_at(offset, bytes)?;
        if read == bytes.len() {
            return Ok(());
        }
        let (number, len) = (self.number(), bytes.len());
        let end = offset.saturating_add(read as u64);
        Err(Error::EndOfFile(format!("inode {number}: {len} bytes at {offset}: it ends at {end}")))
    }

    /// Writes `bytes` at `offset`, in memory; the file grows if it ends before. Waits while too much
    /// is not on the device yet.
    ///
    /// # Errors
    /// The file would be larger than the format allows; it is no regular file; its flags forbid it;
    /// no space; the volume is read-only.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.open.write(offset, bytes, self.terms())
    }

    /// As [`write_at`](Self::write_at), of the bytes of `memory` in `range`, which are not copied as long
    /// as they are whole blocks.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); [`Error::Invalid`] if `range` leaves the memory.
    pub fn write_shared(
        &self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Result<(), Error> {
        self.open.write_shared(offset, memory, range, self.terms())
    }

    /// Writes `bytes` at the end of the file, behind what others append meanwhile; returns where
    /// that was.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn append(&self, bytes: &[u8]) -> Result<u64, Error> {
        self.open.append(bytes, self.terms())
    }

    /// Gives the file this size: data behind it is freed, new bytes read as zeros.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn set_len(&self, size: u64) -> Result<(), Error> {
        self.expect_changeable()?;
        self.open.truncate(size, self.file_system.data_time())
    }

    /// The first byte at or behind `offset` that is stored; `None` if only zeros that are not stored
    /// follow, or nothing.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn seek_data(&self, offset: u64) -> Result<Option<u64>, Error> {
        self.open.seek_data(offset)
    }

    /// The first byte at or behind `offset` that is not stored, the end of the file at last; `None`
    /// behind that.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn seek_hole(&self, offset: u64) -> Result<Option<u64>, Error> {
        self.open.seek_hole(offset)
    }

    /// Starts to make the file durable, and its names, as it is now; the ticket tells when it is.
    pub fn fsync(&self) -> SyncTicket {
        self.open.fsync()
    }

    /// As [`fsync`](Self::fsync), without times that are not needed to read the data.
    pub fn fdatasync(&self) -> SyncTicket {
        self.open.fdatasync()
    }

    /// As [`fdatasync`](Self::fdatasync), for a server that keeps the file open for others: losses
    /// of before stay, for the one who asks next.
    pub fn store_data(&self) -> SyncTicket {
        self.open.store_data()
    }

    /// Whether data of the file was lost that the next [`fsync`](Self::fsync) tells of.
    #[must_use]
    pub fn has_untold_loss(&self) -> bool {
        self.open.has_untold_loss()
    }

    /// As [`fsync`](Self::fsync), and waits.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fsync_and_wait(&self) -> Result<(), Error> {
        self.open.fsync_and_wait()
    }

    /// As [`fdatasync`](Self::fdatasync), and waits.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fdatasync_and_wait(&self) -> Result<(), Error> {
        self.open.fdatasync_and_wait()
    }

    /// Lets go of the file, as dropping it does, and tells of errors in what that sets free.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub fn close(self) -> Result<(), Error> {
        self.open.close()
    }

    /// Refuses a change of the content that is no growth, if the flags of the file forbid it.
    fn expect_changeable(&self) -> Result<(), Error> {
        self.open.inode().read().expect_mutable(true)
    }

    /// The terms of its writes.
    fn terms(&self) -> WriteTerms {
        WriteTerms { now: self.file_system.data_time(), heeds_flags: true }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("number", &self.number())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
