//! What directory and attribute code sees of the inode fork it lives in.
//!
//! Blocks are addressed by file block; a directory block may be several file system blocks, an
//! attribute block is always one. The engine implements the traits over an open transaction and a
//! locked inode; tests implement them in memory.

use crate::cache::{BufferRef, EditGuard};
use crate::error::Error;
use crate::format::BufferKind;
use crate::geometry::Geometry;
use crate::units::{FileBlock, InodeNumber};

/// A fork open for reading.
pub trait DaFork {
    /// Sizes of the volume.
    fn geometry(&self) -> &Geometry;

    /// The inode the fork belongs to: owner in block headers.
    fn inode(&self) -> InodeNumber;

    /// File system blocks per block of this fork: 1 for attributes.
    fn block_blocks(&self) -> u32;

    /// Content of a local (short form) fork, `None` in any other format.
    fn local(&self) -> Option<&[u8]>;

    /// Bytes the fork has inside the inode.
    fn inline_size(&self) -> usize;

    /// Size of the inode in bytes (directories: of the data range).
    fn size(&self) -> u64;

    /// One past the last mapped file block, 0 for an empty fork.
    fn end(&mut self) -> Result<FileBlock, Error>;

    /// First mapped file block at or after `from`.
    fn next_mapped(&mut self, from: FileBlock) -> Result<Option<FileBlock>, Error>;

    /// Reads and verifies the block at `block`; `None` for a hole. The owner is checked.
    fn read(&mut self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferRef>, Error>;

    /// Begins to read the blocks of this fork that are mapped from `from` on, up to `count` of
    /// them; returns the file block behind the last, which is where the next call goes on. Errors
    /// show when a block is read. A fork in memory has nothing to do.
    fn prefetch(&mut self, _from: FileBlock, _count: usize) -> FileBlock {
        FileBlock(u64::MAX)
    }

    /// An error for damage found in this fork: the defect, and its file block.
    fn corrupt(&self, block: FileBlock, what: String) -> Error;
}

/// A fork open for change in a transaction.
pub trait DaForkMut: DaFork {
    /// Opens a buffer of the fork for change; it joins the transaction.
    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b>;

    /// Maps the lowest unused block at or after `from` (multiples of [`DaFork::block_blocks`]) and
    /// returns its place and a zeroed buffer of `kind` that belongs to the transaction. The
    /// caller writes the header.
    fn grow(&mut self, from: FileBlock, kind: BufferKind) -> Result<(FileBlock, BufferRef), Error>;

    /// Maps `len` unused consecutive file blocks at or after `from` without buffers (remote
    /// attribute values, which may lie in several extents) and returns the first.
    fn map(&mut self, from: FileBlock, len: u32) -> Result<FileBlock, Error>;

    /// Makes a new zeroed buffer for one mapped file block, part of the transaction.
    fn fresh(&mut self, block: FileBlock, kind: BufferKind) -> Result<BufferRef, Error>;

    /// Unmaps and frees `len` file system blocks from `block`; buffers over them are dropped.
    fn unmap(&mut self, block: FileBlock, len: u32) -> Result<(), Error>;

    /// Makes the fork local with this content (which fits the fork), or, with `None`, an empty
    /// extents fork. Blocks must have been unmapped before.
    fn set_local(&mut self, content: Option<Vec<u8>>) -> Result<(), Error>;

    /// Sets the size of the inode (directories).
    fn set_size(&mut self, size: u64);

    /// Asks that the fork get room for `bytes` of short form content by moving the boundary between
    /// the two forks of the inode (docs/algorithms/attributes.md#fork-offset). `false`: no room.
    /// Only attribute forks move the boundary; for a directory it compares with the present size.
    ///
    /// # Errors
    /// The data fork had to move out of the way, and that failed.
    fn make_room(&mut self, bytes: usize) -> Result<bool, Error>;
}
