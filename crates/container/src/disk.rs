//! Disks that are only read, and the files that they are in.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes of a disk that is only read.
pub(crate) trait Disk: Send + Sync {
    /// Its length.
    fn bytes(&self) -> u64;

    /// Fills memory with its bytes from a place on, all of which are in it.
    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()>;
}

/// A file whose length was asked for once.
#[derive(Debug)]
pub(crate) struct Stored {
    file: File,
    length: u64,
}

impl Stored {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Fills memory with bytes that have to be there.
    pub(crate) fn fill(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        end_of(at, memory.len() as u64, self.length)?;
        self.file.read_exact_at(memory, at)
    }

    /// So many bytes that have to be there.
    pub(crate) fn array<const LENGTH: usize>(&self, at: u64) -> io::Result<[u8; LENGTH]> {
        let mut bytes = [0; LENGTH];
        self.fill(at, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }
}

/// What says that something in a file cannot be.
pub(crate) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The end of so many bytes at a place, which have to be in a file of a length.
pub(crate) fn end_of(at: u64, bytes: u64, length: u64) -> io::Result<u64> {
    at.checked_add(bytes).filter(|end| *end <= length).ok_or_else(|| {
        invalid(format!("{bytes} bytes at byte {at} are behind the end of the file"))
    })
}

/// Reads a range of a disk block by block: number of the block, place in it, memory to fill.
pub(crate) fn by_blocks(
    mut at: u64,
    mut memory: &mut [u8],
    block_bytes: u64,
    read: impl Fn(u64, u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    while !memory.is_empty() {
        let (block, offset) = (at / block_bytes, at % block_bytes);
        let length = (block_bytes - offset).min(memory.len() as u64);
        // Not longer than the memory.
        let (piece, rest) = memory.split_at_mut(length as usize);
        read(block, offset, piece)?;
        at += length;
        memory = rest;
    }
    Ok(())
}

/// The part of a file that is a disk as it is.
pub(crate) struct Flat {
    pub(crate) stored: Stored,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl Disk for Flat {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        self.stored.fill(self.start + at, memory)
    }
}
