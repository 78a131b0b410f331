//! The open checkpoint: what transactions committed since the last one was closed.
//!
//! It holds no copies. Buffers stay as they are in memory, and items are made from them once, when
//! the checkpoint is closed; until it is durable they are not written in their places.

use super::buffer_key::BufferKey;
use super::items::{self, Removal};
use crate::cache::{BufferRef, Cache, Content};
use crate::format::{BufferKind, InodeCreateItem, IntentDone, OperationHeader};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use undercroft_block::Batch;

/// The content of a transaction for the journal besides its buffers.
#[derive(Debug, Default)]
pub(crate) struct LogRecordHints {
    /// Buffers that were freed (`true`), or whose place is in use again (`false`).
    freed: FxHashMap<BufferKey, bool>,
    created: SmallVec<[InodeCreateItem; 1]>,
    data: SmallVec<[Batch; 1]>,
    /// Items that say that intents of a kernel are done.
    done: Vec<Vec<u8>>,
    removals: Vec<Removal>,
}

impl LogRecordHints {
    /// Inodes were removed together with their cluster.
    pub(crate) fn remove(&mut self, removals: Vec<Removal>) {
        self.removals.extend(removals);
    }

    /// A buffer was freed: its images in the journal must not be replayed.
    pub(crate) fn free(&mut self, key: BufferKey) {
        self.freed.insert(key, true);
    }

    /// A place that may have been freed has a new buffer, which is logged whole.
    pub(crate) fn reuse(&mut self, key: BufferKey) {
        self.freed.insert(key, false);
    }

    /// A chunk of inodes was made.
    pub(crate) fn create(&mut self, chunk: InodeCreateItem) {
        self.created.push(chunk);
    }

    /// An intent of a kernel is done.
    pub(crate) fn finish(&mut self, done: &IntentDone) {
        let mut region = Vec::new();
        done.encode(&mut region);
        self.done.push(region);
    }

    /// These writes of file data must be durable before the transaction is.
    pub(crate) fn add_data(&mut self, writes: &Batch) {
        self.data.push(writes.clone());
    }
}

/// The changes committed since the last checkpoint was closed.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    pub(super) sequence: u64,
    /// Buffers with changes, each once. Some may have been freed since.
    pub(super) buffers: Vec<BufferRef>,
    /// Values of attributes, which are written before the first record instead of being logged.
    pub(super) direct: Vec<BufferRef>,
    /// Buffers that left memory when their blocks were freed.
    pub(super) freed: Vec<BufferRef>,
    pub(super) cancels: FxHashMap<BufferKey, ()>,
    pub(super) created: Vec<InodeCreateItem>,
    /// Items that say that intents of a kernel are done.
    pub(super) done: Vec<Vec<u8>>,
    pub(super) removals: Vec<Removal>,
    /// Writes of file data that must be waited for before the first record.
    pub(super) data: Vec<Batch>,
    /// File data was written, which must be flushed before the first record.
    pub(super) has_data: bool,
    /// The most bytes that the items take.
    pub(super) bytes: usize,
    /// The most bytes that running transactions will add.
    pub(super) reserved: usize,
}

impl Checkpoint {
    pub(super) fn new(sequence: u64) -> Self {
        Self { sequence, ..Self::default() }
    }

    /// Whether there is nothing that a record could hold.
    pub(super) fn has_no_items(&self) -> bool {
        self.buffers.is_empty()
            && self.direct.is_empty()
            && self.cancels.is_empty()
            && self.created.is_empty()
            && self.done.is_empty()
    }

    /// Whether there is nothing to make durable.
    pub(super) fn is_empty(&self) -> bool {
        self.has_no_items() && !self.has_data
    }

    /// Takes the changes of a transaction.
    pub(super) fn add(&mut self, part: Part, notes: &mut LogRecordHints) {
        debug_assert_eq!(part.sequence, self.sequence, "the gate keeps a checkpoint open");
        self.buffers.extend(part.buffers);
        self.direct.extend(part.direct);
        self.freed.extend(part.freed);
        // Two transactions with inodes in one cluster may come in another order than they counted
        // in; then this counts too much.
        self.bytes = self.bytes.saturating_add_signed(part.bytes);
        for (key, freed) in notes.freed.drain() {
            let bytes = items::cancel_bound(key.1);
            if freed {
                self.bytes += if self.cancels.insert(key, ()).is_none() { bytes } else { 0 };
            } else if self.cancels.remove(&key).is_some() {
                self.bytes -= bytes;
            }
        }
        self.bytes += notes.created.len() * (OperationHeader::LEN + InodeCreateItem::LEN);
        self.created.extend(notes.created.drain(..));
        self.bytes +=
            notes.done.iter().map(|done| OperationHeader::LEN + done.len()).sum::<usize>();
        self.done.append(&mut notes.done);
        self.bytes += notes.removals.len() * Removal::BYTES;
        self.removals.append(&mut notes.removals);
        notes.data.drain(..).for_each(|writes| self.add_data(writes));
    }

    /// Takes writes of file data that must be durable before the checkpoint is.
    pub(super) fn add_data(&mut self, writes: Batch) {
        self.has_data = true;
        // Nothing to wait for, but for the flush, if all are done and none failed.
        if writes.outstanding() > 0 || writes.check().is_err() {
            self.data.push(writes);
        }
    }
}

/// The buffers of one transaction, on their way into the open checkpoint. They are looked at before
/// the checkpoint is locked, so that transactions of different groups seldom meet there.
#[derive(Debug)]
pub(super) struct Part {
    sequence: u64,
    buffers: SmallVec<[BufferRef; 12]>,
    direct: Vec<BufferRef>,
    freed: Vec<BufferRef>,
    /// The growth of the items of the checkpoint.
    bytes: isize,
}

impl Part {
    /// Takes the buffers that a transaction changed; they are no longer part of it. The caller holds
    /// the gate, so the checkpoint `sequence` stays open, and the locks that guard the buffers.
    pub(super) fn collect(sequence: u64, cache: &Cache, joined: &[BufferRef]) -> Self {
        let (direct, freed) = (Vec::new(), Vec::new());
        let mut part = Self { sequence, buffers: SmallVec::new(), direct, freed, bytes: 0 };
        for buffer in joined {
            part.add_buffer(cache, buffer, &mut buffer.content());
        }
        part
    }

    fn add_buffer(&mut self, cache: &Cache, buffer: &BufferRef, content: &mut Content) {
        content.joined = false;
        content.stale_checksum = true;
        if content.log.freed {
            self.grow(std::mem::take(&mut content.log.bytes), 0);
            content.log.checkpoint = self.sequence;
            self.freed.push(Arc::clone(buffer));
            return;
        }
        if content.kind == BufferKind::AttrRemote {
            content.changes.clear();
            cache.count_dirty(content);
            self.direct.push(Arc::clone(buffer));
            return;
        }
        let bytes = items::bound(content, cache.geometry());
        let known = content.log.checkpoint == self.sequence;
        if bytes == 0 && !content.log.created && !known {
            return;
        }
        if !known {
            content.log.checkpoint = self.sequence;
            content.log.bytes = 0;
            self.buffers.push(Arc::clone(buffer));
        }
        self.grow(std::mem::replace(&mut content.log.bytes, bytes), bytes);
        cache.count_dirty(content);
    }

    /// Counts a buffer whose items had `from` bytes and have `to`.
    fn grow(&mut self, from: usize, to: usize) {
        // Both are at most a few blocks.
        self.bytes += to as isize - from as isize;
    }
}
