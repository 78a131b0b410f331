//! Changes of the data of existing files.
//!
//! Each operation is a chain of steps. A step is one transaction that leaves the volume consistent
//! and touches a bounded number of extents; between two of them the file has the old data in some
//! places and the new data in others, never anything else. What a step maps is on the device before
//! it commits (journal reference, section 7.4): new blocks are chosen, written, and only then
//! mapped. Blocks that other files have, too, are never overwritten: their data moves to new ones.

mod clone;
mod data;
mod dedupe;
mod preallocate;
mod shift;
mod truncate;
mod write;

pub use clone::CloneRange;
pub use preallocate::Size;

use crate::bmap;
use crate::error::Error;
use crate::format::{FileType, InodeFlags, InodeFlags2, Timestamp};
use crate::geometry::Geometry;
use crate::inode::{ForkKind, InodeGuard};
use crate::trans::Transaction;
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::Range;
use undercroft_block::{Batch, Plug};

/// A regular file whose data is being changed. The lock of its inode is held for as long.
///
/// An operation that failed may have done a part of its work; the volume and the file are sound.
/// Setuid bits are the caller's to clear.
pub struct FileEdit<'a> {
    volume: &'a Volume,
    inode: &'a mut InodeGuard,
    now: Timestamp,
    /// The operation at hand has set the times already.
    stamped: bool,
    plug: Plug,
    writes: Batch,
}

impl<'a> FileEdit<'a> {
    /// Opens a regular file for changes that happen at the time `now`.
    ///
    /// # Errors
    /// The inode is something else, its data is on a realtime device, or it is one of the volume's
    /// own files.
    pub fn new(
        volume: &'a Volume,
        inode: &'a mut InodeGuard,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let wrong = |what| {
            let path = format!("inode {}", inode.number);
            Err(Error::WrongKind { path, what })
        };
        if inode.file_type() != FileType::Regular {
            return wrong("not a regular file");
        }
        if inode.core.flags.contains(InodeFlags::REALTIME) {
            return wrong("its data is on a realtime device");
        }
        let superblock = volume.superblock();
        let own = [superblock.rt_bitmap_inode, superblock.rt_summary_inode];
        if inode.core.flags2.contains(InodeFlags2::METADATA) || own.contains(&inode.number) {
            return wrong("it belongs to the volume itself");
        }
        let plug = Plug::new(volume.cache().device());
        Ok(Self { volume, inode, now, stamped: false, plug, writes: Batch::new() })
    }

    fn geometry(&self) -> &'a Geometry {
        self.volume.geometry()
    }

    /// The blocks that hold the bytes `range`.
    fn blocks_over(&self, range: &Range<u64>) -> Range<FileBlock> {
        let geometry = self.geometry();
        FileBlock(range.start >> geometry.block_log)..FileBlock(geometry.blocks_for(range.end))
    }

    /// The blocks that lie wholly in the bytes `range`; perhaps none.
    fn blocks_inside(&self, range: &Range<u64>) -> Range<FileBlock> {
        let geometry = self.geometry();
        FileBlock(geometry.blocks_for(range.start))..FileBlock(range.end >> geometry.block_log)
    }

    /// Offset of a block in bytes.
    fn byte(&self, block: FileBlock) -> u64 {
        // Blocks of files that this opens lie below 2^63 bytes, or nobody asks for their bytes.
        block.0.saturating_mul(self.geometry().block_size() as u64)
    }

    /// Starts an operation.
    fn start(&mut self) {
        self.stamped = false;
    }

    /// Ends an operation: sets the times if no step has, and the size where it grows.
    fn finish(&mut self, size: u64) -> Result<(), Error> {
        self.wait()?;
        if self.stamped && size <= self.inode.core.size {
            return Ok(());
        }
        let trans = self.volume.begin()?;
        self.inode.core.size = self.inode.core.size.max(size);
        self.commit(trans)
    }

    /// Commits a step. The first of an operation sets the times.
    fn commit(&mut self, trans: Transaction<'_>) -> Result<(), Error> {
        if !self.stamped {
            self.stamped = true;
            let core = &mut self.inode.core;
            let now = self.now.clamped(core.timestamp_encoding());
            (core.mtime, core.ctime) = (now, now);
            core.changecount += 1;
        }
        self.inode.touch();
        trans.commit(&mut [&mut *self.inode])
    }

    /// Unmaps whole blocks, the last ones first.
    fn unmap(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        loop {
            let extents = bmap::extents(self.volume, self.inode, ForkKind::Data)?;
            if extents.last_in(blocks.start, blocks.end).is_none() {
                return Ok(());
            }
            let mut trans = self.volume.begin()?;
            let (from, to) = (blocks.start, blocks.end);
            bmap::remove(&mut trans, self.inode, ForkKind::Data, from, to)?;
            self.commit(trans)?;
        }
    }
}

/// Ends a step that found no space. What it changed until then, free lists of groups, is complete.
fn give_up(trans: Transaction<'_>, error: Error) -> Error {
    trans.commit(&mut []).err().unwrap_or(error)
}
