//! Reads of buffers that tasks wait for.

use super::arrival::Arrival;
use crate::address::BufferAddress;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use undercroft_block::{BlockError, Sector};

/// The read of a buffer that tasks wait for.
#[derive(Debug)]
pub(crate) struct AwaitedRead {
    pub(crate) address: BufferAddress,
    /// Which cache it is of, by its place in memory.
    pub(crate) cache: usize,
    /// Evictions of its part of the table when it was begun.
    pub(crate) evictions: u64,
    /// It was begun before a task asked for it: its error is none of theirs.
    pub(crate) was_ahead: bool,
    pub(crate) state: Mutex<ReadState>,
}

#[derive(Debug)]
pub(crate) enum ReadState {
    OnItsWay(Arrival),
    /// The cache has it, or had.
    InMemory,
    Failed(BlockError),
    Damaged(Vec<u8>),
}

/// Reads that tasks wait for.
#[derive(Debug, Default)]
pub(crate) struct AwaitedReads {
    by_sector: Mutex<FxHashMap<Sector, Weak<AwaitedRead>>>,
}

impl AwaitedRead {
    /// Ready when it has arrived, or failed.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let state = self.state.lock();
        let ReadState::OnItsWay(arrival) = &*state else { return Poll::Ready(()) };
        arrival.poll(context)
    }

    pub(crate) fn is_of(&self, cache: usize, address: &BufferAddress) -> bool {
        self.cache == cache && self.address == *address
    }

    pub(crate) fn is_useless(&self) -> bool {
        matches!(*self.state.lock(), ReadState::Failed(_) | ReadState::Damaged(_))
    }
}

impl AwaitedReads {
    /// The read of this buffer, if one is under way.
    pub(crate) fn find(&self, address: &BufferAddress) -> Option<Arc<AwaitedRead>> {
        let read = self.by_sector.lock().get(&address.first()).and_then(Weak::upgrade)?;
        let is_under_way = matches!(*read.state.lock(), ReadState::OnItsWay(_));
        (read.address == *address && is_under_way).then_some(read)
    }

    pub(crate) fn add(&self, read: &Arc<AwaitedRead>) {
        let mut reads = self.by_sector.lock();
        if reads.len() == reads.capacity() {
            // As often as the table doubles.
            reads.retain(|_, read| read.strong_count() > 0);
        }
        reads.insert(read.address.first(), Arc::downgrade(read));
    }
}
