//! A part of a file: an archive, or a blob inside of one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// A run of bytes of a regular file.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    file: Arc<File>,
    start: u64,
    length: u64,
}

/// Length and time of the last change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: (i64, i64),
}

impl Region {
    /// All of a file.
    pub(crate) fn whole(file: Arc<File>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, start: 0, length })
    }

    /// The `length` bytes from `start`; `None` if there are not so many.
    pub(crate) fn part(&self, start: u64, length: u64) -> Option<Self> {
        let end = start.checked_add(length)?;
        let start = self.start + start;
        (end <= self.length).then(|| Self { file: Arc::clone(&self.file), start, length })
    }

    /// What changes with the file.
    pub(crate) fn stamp(&self) -> io::Result<Stamp> {
        let file = self.file.metadata()?;
        Ok(Stamp { length: file.len(), modified: (file.mtime(), file.mtime_nsec()) })
    }

    /// Number of bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads some bytes at `position`; 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let left = self.length.saturating_sub(position);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        loop {
            match self.file.read_at(&mut buffer[..length], self.start + position) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Fills `buffer` from `position`.
    pub(crate) fn read_exact_at(&self, mut buffer: &mut [u8], mut position: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let count = self.read_at(buffer, position)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[count..];
            position += count as u64;
        }
        Ok(())
    }

    /// The bytes as a stream from the start, independent of other readers.
    pub(crate) fn stream(&self) -> RegionStream {
        RegionStream { region: self.clone(), position: 0 }
    }
}

/// A region read from its start.
pub(crate) struct RegionStream {
    region: Region,
    position: u64,
}

impl Read for RegionStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.region.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
