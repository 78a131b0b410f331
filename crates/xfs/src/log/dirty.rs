//! Buffers whose changes are durable in the journal and not yet in their places, by the position in
//! the journal that they pin.

use crate::cache::{BufferRef, Content};
use crate::format::BufferKind;
use crate::units::Lsn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The list of dirty buffers. A buffer is in the list of the oldest checkpoint that it needs;
/// entries that a later checkpoint made obsolete are dropped when they are met.
#[derive(Debug, Default)]
pub(super) struct DirtyList {
    by_start: BTreeMap<Lsn, Vec<BufferRef>>,
}

fn pins(content: &Content, start: Lsn) -> bool {
    content.log.tail == start
}

impl DirtyList {
    /// Enters the buffers of a checkpoint that became durable; it starts at `start`.
    ///
    /// What a buffer needs is all in the new checkpoint, so it pins no earlier one. A cluster of
    /// inodes is the exception: only the inodes changed last are in it, and the item of its chunk
    /// must stay until all of the cluster is in its place.
    pub(super) fn insert(&mut self, start: Lsn, logged: Vec<BufferRef>, freed: &[BufferRef]) {
        for buffer in freed {
            buffer.content().log.tail = Lsn(0);
        }
        let entries = logged.into_iter().filter(|buffer| {
            let content = &mut *buffer.content();
            let log = &mut content.log;
            if content.kind != BufferKind::InodeCluster || log.tail == Lsn(0) {
                log.tail = start;
            } else if log.writing && log.next_tail == Lsn(0) {
                // The write under way took the cluster as it was before this checkpoint.
                log.next_tail = start;
            } else {
                return false;
            }
            true
        });
        let entries: Vec<_> = entries.collect();
        if !entries.is_empty() {
            self.by_start.insert(start, entries);
        }
    }

    /// The oldest position that a buffer pins.
    pub(super) fn tail(&mut self) -> Option<Lsn> {
        while let Some(mut first) = self.by_start.first_entry() {
            let start = *first.key();
            let buffers = first.get_mut();
            while buffers.last().is_some_and(|buffer| !pins(&buffer.content(), start)) {
                buffers.pop();
            }
            if !buffers.is_empty() {
                return Some(start);
            }
            first.remove();
        }
        None
    }

    /// Buffers that pin positions up to `end` and can be written, as checkpoints up to `durable`
    /// are durable; the oldest first, of about `bytes` bytes in all.
    pub(super) fn oldest(&self, end: Lsn, durable: u64, bytes: usize) -> Vec<BufferRef> {
        let (mut found, mut sum) = (Vec::new(), 0);
        for (start, buffers) in self.by_start.range(..=end) {
            for buffer in buffers {
                if sum >= bytes {
                    return found;
                }
                let content = buffer.content();
                if pins(&content, *start) && content.can_go_in_place(durable) {
                    sum += buffer.address().len();
                    found.push(Arc::clone(buffer));
                }
            }
        }
        found
    }
}
