//! Changes of the data of existing files.
//!
//! Each operation is a chain of steps. A step is one transaction that leaves the volume consistent
//! and touches a bounded number of extents; between two of them the file has the old data in some
//! places and the new data in others, never anything else. What a step maps is on the device before
//! it commits (docs/format/journal/writing.md#file-data): new blocks are chosen, written, and only
//! then mapped. Blocks that other files have, too, are never overwritten: their data moves to new
//! ones.
//!
//! Locks: that of the data of the file is held for as long as the [`FileEdit`] lives, so that only
//! one operation at a time changes its mapping, and none while the file is being freed. The inode
//! is locked in each step, once the transaction has begun, and given up with it. A step that takes
//! blocks away from the file begins when no thread reads them any more.

mod clone;
mod data;
mod dedupe;
mod preallocate;
mod send_dirty;
mod shift;
mod truncate;
mod unshare;
mod write;

pub use clone::CloneRange;
pub use preallocate::Size;

use super::kind::check_kind;
use super::space::when_free;
use crate::bmap;
use crate::bmap::worst_case;
use crate::changes::Change;
use crate::error::Error;
use crate::format::{AllocRecord, Extent, Timestamp};
use crate::geometry::Geometry;
use crate::inode::ExtentList;
use crate::inode::{BlocksFrozen, DataLock, FileLocks, ForkKind, Inode, InodeGuard};
use crate::rank;
use crate::trans::Transaction;
use crate::units::{FileBlock, InodeNumber};
use crate::volume::Volume;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Batch, Plug};
use undercroft_locks::{MappedRwLockReadGuard, RwLockReadGuard};

/// A regular file whose data is being changed. No other thread changes it meanwhile.
///
/// An operation that failed may have done a part of its work; the volume and the file are sound.
pub(super) struct FileEdit<'a> {
    volume: &'a Volume,
    number: InodeNumber,
    inode: Arc<Inode>,
    locks: Arc<FileLocks>,
    /// The time that it sets. None for what was written before: the write has set the times, and a
    /// program may have set others since. None, too, where a cache above sets the times.
    now: Option<Timestamp>,
    /// The operation at hand has set the times already.
    stamped: bool,
    plug: Plug,
    writes: Batch,
    /// Bios sent stay in the plug, for their neighbours in other files.
    plugged: bool,
    lock: DataLock,
    /// Where it is a change of its own.
    _change: Option<Change<'a>>,
}

/// One step: a transaction, and the inode.
struct Step<'a> {
    trans: Transaction<'a>,
    inode: InodeGuard,
    /// Where it takes blocks away.
    _frozen: Option<BlocksFrozen>,
}

impl<'a> FileEdit<'a> {
    /// Begins to change a regular file, whose data is locked, at the time `now`. Dirty data is
    /// written back first. The caller has no transaction open, and holds no lock of an inode.
    ///
    /// # Errors
    /// The inode is something else, its data is on a realtime device, or it is one of the volume's
    /// own files; it is gone; the volume was closed; the device failed.
    pub(super) fn begin_on(
        volume: &'a Volume,
        inode: &Arc<Inode>,
        lock: DataLock,
        now: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let change = volume.changes().begin()?;
        check_kind(volume, &inode.read())?;
        let lock = Self::send_dirty(volume, inode, lock)?;
        let edit = Self::plugged(volume, Arc::clone(inode), lock, Batch::new())?;
        Ok(Self { plugged: false, now, _change: Some(change), ..edit })
    }

    /// A file of a live volume whose dirty data is written back together with that of others, as a
    /// part of `writes`. Its bios are on their way when the plug of the caller is flushed.
    pub(super) fn plugged(
        volume: &'a Volume,
        inode: Arc<Inode>,
        lock: DataLock,
        writes: Batch,
    ) -> Result<Self, Error> {
        let (number, locks) = {
            let state = inode.read();
            check_kind(volume, &state)?;
            (state.number, Arc::clone(state.locks()))
        };
        let plug = Plug::new(volume.cache().device());
        Ok(Self {
            volume,
            number,
            inode,
            locks,
            now: None,
            stamped: false,
            plug,
            writes,
            plugged: true,
            lock,
            _change: None,
        })
    }

    /// Ends the change; the data stays locked.
    pub(super) fn into_lock(self) -> DataLock {
        self.lock
    }

    fn geometry(&self) -> &'a Geometry {
        self.volume.geometry()
    }

    /// Size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.inode.read().core.size
    }

    /// The extents of the file. No step may begin while they are held.
    fn extents(&self) -> Result<MappedRwLockReadGuard<'_, ExtentList, { rank::INODE }>, Error> {
        let state = self.inode.read();
        bmap::extents(self.volume, &state, ForkKind::Data)?;
        // Read above, and nobody takes it away.
        Ok(RwLockReadGuard::map(state, |state| state.data.known_extents()))
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
        // Blocks of files that this opens lie below 2^63 bytes, or their bytes are not asked for.
        block.0.saturating_mul(self.geometry().block_size() as u64)
    }

    /// Starts an operation.
    fn start(&mut self) {
        self.stamped = false;
    }

    /// Ends an operation: sets the times if no step has, and the size where it grows.
    fn finish(&mut self, size: u64) -> Result<(), Error> {
        self.before_next_checkpoint()?;
        if self.stamped && size <= self.size() {
            return Ok(());
        }
        let mut step = self.begin()?;
        step.inode.core.size = step.inode.core.size.max(size);
        self.commit(step)
    }

    /// Begins a step that takes no blocks away from the file.
    fn begin(&self) -> Result<Step<'a>, Error> {
        self.join(self.transaction(self.volume.longest_log_bytes())?, None)
    }

    /// Begins a step that takes blocks away: when no thread reads any.
    fn begin_freeing(&self) -> Result<Step<'a>, Error> {
        let frozen = self.locks.freeze_blocks();
        self.join(self.transaction(self.volume.longest_log_bytes())?, Some(frozen))
    }

    /// The transaction of a step, which takes at most `log_bytes` bytes of the journal.
    fn transaction(&self, log_bytes: usize) -> Result<Transaction<'a>, Error> {
        self.volume.begin_accepted(log_bytes)
    }

    /// Makes a transaction a step of this file.
    fn join(
        &self,
        trans: Transaction<'a>,
        frozen: Option<BlocksFrozen>,
    ) -> Result<Step<'a>, Error> {
        let inode = InodeGuard::new(&self.inode);
        inode.expect_in_use()?;
        Ok(Step { trans, inode, _frozen: frozen })
    }

    /// Forbids overwriting the blocks of `extent` before the step that is under way is durable: a
    /// crash would bring back their present mapping.
    fn protect(&self, extent: &Extent) {
        let (ag, start) = self.geometry().split_block(extent.start);
        self.volume.protect(&self.volume.group(ag).busy, AllocRecord { start, len: extent.len });
    }

    /// Commits a step. The first of an operation sets the times.
    fn commit(&mut self, step: Step<'_>) -> Result<(), Error> {
        let Step { trans, mut inode, _frozen } = step;
        if !self.stamped {
            self.stamped = true;
            let core = &mut inode.core;
            if let Some(now) = self.now {
                let now = now.clamped(core.timestamp_encoding());
                (core.mtime, core.ctime) = (now, now);
            }
            core.changecount += 1;
        }
        inode.touch();
        trans.commit(&mut [&mut inode])
    }

    /// Does a step, [when its space is free](when_free).
    fn when_free<T>(&mut self, step: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        when_free(self.volume, || step(self))
    }

    /// Unmaps whole blocks, the last ones first. An extent may be split for that even on a volume
    /// that is full.
    fn unmap(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        let (from, to) = (blocks.start, blocks.end);
        while self.extents()?.last_in(from, to).is_some() {
            let mut step = self.begin_freeing()?;
            let blocks = worst_case::removal(&step.trans);
            step.trans.reserve_for_removal(blocks);
            bmap::remove(&mut step.trans, &mut step.inode, ForkKind::Data, from, to)?;
            self.commit(step)?;
        }
        Ok(())
    }
}

/// Ends a step that found no space. Its changes until then, of free lists of groups, are complete.
fn give_up(step: Step<'_>, error: Error) -> Error {
    step.trans.commit(&mut []).err().unwrap_or(error)
}
