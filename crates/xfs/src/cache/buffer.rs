//! One metadata buffer in memory.
//!
//! The bytes are guarded by a lock of their own so that the type is safe to share, but the right to
//! change them is decided above: the lock of an allocation group or of an inode
//! (docs/decisions/locks.md#order-of-locks). The inner lock is therefore never contended except by
//! write-back.

use super::open_buffers::{OpenBuffer, expect_closed};
use crate::address::BufferAddress;
use crate::bytes::{Changes, EditBytes, put_be32};
use crate::format::{BufferKind, NEXT_UNLINKED_OFFSET};
use crate::units::{AgInode, Lsn};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use undercroft_block::Sector;

/// A shared metadata buffer.
pub(crate) type BufferRef = Arc<MetaBuffer>;

/// A piece of metadata in memory, verified when it was read.
pub struct MetaBuffer {
    address: BufferAddress,
    content: RwLock<Content>,
    /// Used since the last sweep of the cache (second-chance eviction).
    referenced: AtomicBool,
    /// Sweeps that it outlives without being used.
    age_credit: AtomicU8,
}

/// Sweeps that a buffer outlives without being used, if there is no great need of memory.
///
/// Inodes have a table of their own and the rest is read in one go with them, so a buffer that was
/// not used for one sweep is not used soon. Buffers that lead to others, of trees and directories,
/// are used again at random: a name whose hash another has needs a look at the other's block,
/// however old.
const fn age_credit(kind: BufferKind) -> u8 {
    match kind {
        BufferKind::InodeCluster
        | BufferKind::AttrLeaf
        | BufferKind::AttrRemote
        | BufferKind::Symlink => 0,
        _ => MOST_AGE_CREDIT,
    }
}

/// The most that [`age_credit`] gives.
pub(super) const MOST_AGE_CREDIT: u8 = 15;

/// The state that the lock of a buffer guards.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) changes: Changes,
    pub(crate) kind: BufferKind,
    /// Part of an open transaction; never written back while set.
    pub(crate) joined: bool,
    /// Newer than the disk.
    pub(crate) dirty: bool,
    /// Newer than what was read, since some time ago.
    pub(super) was_dirty: bool,
    /// Changed since it was read: write-back stamps a copy.
    pub(crate) stale_checksum: bool,
    /// No longer in the cache, and never again: the cache has another buffer at this address.
    pub(crate) retired: bool,
    /// The journal's state of the buffer; stays empty on volumes whose changes skip it.
    pub(crate) log: Logged,
}

impl Content {
    /// Whether the buffer may be written in its place, and needs it, when checkpoints up to
    /// `durable` are durable in the journal.
    pub(crate) const fn can_go_in_place(&self, durable: u64) -> bool {
        let log = &self.log;
        let waits = self.joined || log.freed || log.writing || log.checkpoint > durable;
        self.dirty && !waits
    }
}

/// The journal's state of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    /// The newest checkpoint that holds changes of it, 0 if none does. Until that one is durable,
    /// the buffer must not be written in its place.
    pub(crate) checkpoint: u64,
    /// Bytes counted for it in that checkpoint, as long as it is open.
    pub(crate) bytes: usize,
    /// Start of that checkpoint once it is closed; it is stamped into the buffer.
    pub(crate) lsn: Lsn,
    /// Start of the oldest checkpoint that holds changes which are not in their place for sure;
    /// 0 if all are.
    pub(crate) tail: Lsn,
    /// Inode clusters: what `tail` becomes when the write under way is durable.
    pub(crate) next_tail: Lsn,
    /// Changes that are on their way to their place.
    pub(crate) in_flight: Changes,
    /// A write to its place is under way.
    pub(crate) writing: bool,
    /// Inode clusters: list pointers changed in the open checkpoint.
    pub(crate) pointers: Changes,
    /// Inode clusters: new, and described by the item of their chunk.
    pub(crate) created: bool,
    /// The blocks were freed.
    pub(crate) freed: bool,
}

impl MetaBuffer {
    /// A buffer of `kind` at `address` with these bytes, clean.
    #[must_use]
    pub fn new(address: BufferAddress, kind: BufferKind, bytes: Vec<u8>) -> BufferRef {
        debug_assert_eq!(address.len(), bytes.len());
        Arc::new(Self {
            address,
            content: RwLock::new(Content {
                bytes,
                changes: Changes::default(),
                kind,
                joined: false,
                dirty: false,
                was_dirty: false,
                stale_checksum: false,
                retired: false,
                log: Logged::default(),
            }),
            referenced: AtomicBool::new(true),
            age_credit: AtomicU8::new(age_credit(kind)),
        })
    }

    /// Where it lives.
    #[must_use]
    pub fn address(&self) -> &BufferAddress {
        &self.address
    }

    /// First sector, the buffer's name.
    #[must_use]
    pub fn sector(&self) -> Sector {
        self.address.first()
    }

    /// Opens the bytes for reading. Do not hold it across a call that may open the same buffer: it
    /// would wait for a writer that waits for this.
    #[must_use]
    #[inline]
    pub fn read(&self) -> ReadGuard<'_> {
        let opened = OpenBuffer::new(self);
        ReadGuard { content: self.content.read(), _opened: opened }
    }

    /// Opens the content for change; only transactions and the cache do that.
    #[inline]
    pub(crate) fn content(&self) -> RwLockWriteGuard<'_, Content> {
        expect_closed(self);
        self.content.write()
    }

    /// Whether the buffer outlives a sweep that takes `loss`, at least 1, off its age_credit.
    pub(super) fn outlives(&self, loss: u8) -> bool {
        let content = self.content.read();
        let left = if self.take_referenced() {
            Some(age_credit(content.kind))
        } else if content.dirty {
            return true;
        } else {
            self.age_credit.load(Ordering::Relaxed).checked_sub(loss)
        };
        // Only sweeps change it, and of a part of the table there is one at a time.
        left.inspect(|left| self.age_credit.store(*left, Ordering::Relaxed)).is_some()
    }

    /// Takes a buffer that is to leave the cache out of use, for callers that reach it without the
    /// cache. `false` if it is held: then it has to stay.
    pub(super) fn retire(self: &Arc<Self>) -> bool {
        // A thread that got the buffer without the lock of its part of the cache takes this lock
        // next (`use_as`): either before this, and is counted, or after it, and sees that the
        // buffer is retired. This does not wait for it: it may wait for the lock of the part, which
        // the caller has.
        let Some(mut content) = self.content.try_write() else { return false };
        content.retired = Arc::strong_count(self) == 1;
        content.retired
    }

    /// Whether it was changed since it was read.
    pub(super) fn was_changed(&self) -> bool {
        self.content.read().was_dirty
    }

    /// Counts as a use as a buffer that a reader of `kind` expects, by a caller that has it from an
    /// earlier use; `false` if it is no longer the one in the cache, or of another kind.
    #[inline]
    pub(crate) fn use_as(&self, kind: BufferKind) -> bool {
        let content = self.content.read();
        let current = !content.retired && kind.accepts(content.kind);
        if current {
            self.set_referenced();
        }
        current
    }

    pub(crate) fn set_referenced(&self) {
        self.referenced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_referenced(&self) -> bool {
        self.referenced.swap(false, Ordering::Relaxed)
    }
}

impl fmt::Debug for MetaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetaBuffer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The bytes of a buffer, open for reading.
#[derive(Debug)]
pub struct ReadGuard<'a> {
    content: RwLockReadGuard<'a, Content>,
    _opened: OpenBuffer,
}

impl ReadGuard<'_> {
    /// Whether the buffer was changed since it was read or written: its checksums are old.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.content.joined || self.content.dirty || self.content.stale_checksum
    }

    /// The kind of the buffer.
    #[must_use]
    pub fn kind(&self) -> BufferKind {
        self.content.kind
    }
}

impl Deref for ReadGuard<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.content.bytes
    }
}

/// A buffer that belongs to an open transaction, open for change.
#[derive(Debug)]
pub struct EditGuard<'a>(pub(crate) RwLockWriteGuard<'a, Content>);

impl EditGuard<'_> {
    /// The bytes; every write through it marks the bytes it changed.
    #[inline]
    pub fn edit(&mut self) -> EditBytes<'_> {
        let content = &mut *self.0;
        EditBytes::new(&mut content.bytes, &mut content.changes)
    }

    /// Declares that the buffer holds another kind of structure from now on (a directory block
    /// changing form).
    pub fn set_kind(&mut self, kind: BufferKind) {
        self.0.kind = kind;
    }

    /// Says that the inodes which the cluster holds now follow from the item of their new chunk.
    pub(crate) fn set_created(&mut self) {
        self.0.changes.clear();
        self.0.log.created = true;
    }

    /// Stores the list pointer of the inode at `offset` of a cluster. It is not part of what the
    /// journal keeps of an inode.
    pub(crate) fn put_list_pointer(&mut self, offset: usize, next: AgInode) {
        let at = offset + NEXT_UNLINKED_OFFSET;
        put_be32(&mut self.0.bytes, at, next.0);
        self.0.log.pointers.mark(at..at + 4);
    }
}

impl Deref for EditGuard<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}
