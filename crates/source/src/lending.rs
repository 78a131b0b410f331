//! Files that a consumer reads itself, or shares the blocks of, instead of being given their data.

use crate::pool::BufferPool;
use crate::{Chunk, EntryPath, FileError, SourceError};
use parking_lot::Mutex;
use rustix::fs::fstat;
use rustix::io::{pread, retry_on_intr};
use std::fs::File;
use std::sync::Arc;

/// The files that a consumer wants lent. Clones are one.
#[derive(Clone, Debug)]
pub struct Lending {
    least: u64,
    /// File systems, by number, whose files are not wanted any more.
    refused: Arc<Mutex<Vec<u64>>>,
}

impl Lending {
    /// Wants files that have a range of data of at least `least` bytes.
    #[must_use]
    pub fn new(least: u64) -> Self {
        Self { least, refused: Arc::default() }
    }

    /// Length from which on a range of data is worth it.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.least
    }

    pub(crate) fn wants_from(&self, device: u64) -> bool {
        !self.refused.lock().contains(&device)
    }
}

/// An open file whose data is not delivered.
#[derive(Clone, Debug)]
pub struct LentFile {
    file: Arc<File>,
    path: EntryPath,
    size: u64,
    /// Of its file system.
    unit: u64,
    device: u64,
    lending: Lending,
    pool: Arc<BufferPool>,
}

impl LentFile {
    pub(crate) fn new(
        file: File,
        path: EntryPath,
        (size, unit, device): (u64, u64, u64),
        lending: &Lending,
        pool: &Arc<BufferPool>,
    ) -> Self {
        let (lending, pool) = (lending.clone(), Arc::clone(pool));
        Self { file: Arc::new(file), path, size, unit, device, lending, pool }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// What the file system of the file counts in, in bytes.
    #[must_use]
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Has files of this file system delivered from now on, as far as they are not on their way.
    pub fn refuse(&self) {
        let mut refused = self.lending.refused.lock();
        if !refused.contains(&self.device) {
            refused.push(self.device);
        }
    }

    /// Reads some of the bytes from `offset` on, at most `length`, at least one.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    pub fn read(&self, offset: u64, length: u64) -> Result<Chunk, SourceError> {
        let chunk = self
            .pool
            .piece(length, |space| retry_on_intr(|| pread(&self.file, &mut *space, offset)))
            .map_err(|error| FileError::read("read", &self.path, error))?;
        if chunk.is_empty() {
            // It says where it ends now; one that has grown again ended here.
            self.check()?;
            let (path, expected) = (self.path.clone(), self.size);
            return Err(FileError::Shrank { path, expected, found: offset }.into());
        }
        Ok(chunk)
    }

    /// Makes sure, when all of it was used, that the file ends where it did when it was opened.
    ///
    /// # Errors
    /// It grew or shrank.
    pub fn check(&self) -> Result<(), SourceError> {
        let stat =
            fstat(&self.file).map_err(|error| FileError::read("examine", &self.path, error))?;
        let (path, expected, found) = (self.path.clone(), self.size, stat.st_size as u64);
        match found.cmp(&expected) {
            std::cmp::Ordering::Less => Err(FileError::Shrank { path, expected, found }.into()),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(FileError::Grew { path, expected, found }.into()),
        }
    }
}
