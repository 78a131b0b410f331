//! Reads of buffers that were begun before they were asked for.
//!
//! What is on its way or waits for its reader has a bound in bytes; beyond it the oldest goes.

use super::arrival::Arrival;
use super::memory::BLOCK_BYTES;
use crate::address::BufferAddress;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_block::{Bio, Buffer, BufferPool, Sector};

/// Reads that were begun and whose buffers were not asked for.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Memory for what is on its way, which is used again and again.
    memory: BufferPool,
    /// Entries of `state`, to be read without its lock.
    count: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: FxHashMap<Sector, Block>,
    /// First sectors and numbers of the entries, oldest first. Those of entries that are gone stay
    /// until they are the oldest.
    order: VecDeque<(Sector, u64)>,
    next_number: u64,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Block {
    address: BufferAddress,
    number: u64,
    /// Evictions of its part of the table when it was begun.
    pub(crate) evictions: u64,
    pub(crate) arrival: Arrival,
}

impl Default for Blocks {
    fn default() -> Self {
        let memory = BufferPool::new(BLOCK_BYTES);
        Self { memory, count: AtomicUsize::default(), state: Mutex::default() }
    }
}

impl Blocks {
    /// Notes that the buffer at `address` is on its way; returns the reads that bring it. `None` if
    /// it is already.
    pub(crate) fn begin(
        &self,
        address: BufferAddress,
        evictions: u64,
    ) -> Option<SmallVec<[Bio; 1]>> {
        let mut state = self.state.lock();
        if state.begun.contains_key(&address.first()) {
            return None;
        }
        let (bios, arrival) = self.reads_of(&address);
        let number = state.next_number;
        state.next_number += 1;
        state.bytes += address.len();
        state.order.push_back((address.first(), number));
        state.begun.insert(address.first(), Block { address, number, evictions, arrival });
        state.forget_oldest();
        self.count.store(state.begun.len(), Ordering::Relaxed);
        Some(bios)
    }

    /// The reads of a buffer, and what they bring.
    pub(crate) fn reads_of(&self, address: &BufferAddress) -> (SmallVec<[Bio; 1]>, Arrival) {
        // What was forgotten, or is not ahead of its use, may be on its way too.
        let memory = |bytes| self.memory.try_get(bytes).unwrap_or_else(|| Buffer::zeroed(bytes));
        Arrival::by_parts(address, memory)
    }

    /// Takes the prefetch of exactly this buffer.
    pub(crate) fn take(&self, address: &BufferAddress) -> Option<Block> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        if state.begun.get(&address.first())?.address != *address {
            return None;
        }
        let taken = state.begun.remove(&address.first())?;
        state.bytes -= address.len();
        self.count.store(state.begun.len(), Ordering::Relaxed);
        Some(taken)
    }
}

impl State {
    /// Lets the oldest go as long as there is too much, and what is said of those that are gone.
    fn forget_oldest(&mut self) {
        while let Some((sector, number)) = self.order.front().copied() {
            let entry = self.begun.get(&sector).filter(|entry| entry.number == number);
            if entry.is_some() && self.bytes <= BLOCK_BYTES {
                return;
            }
            if let Some(gone) = entry.map(|entry| entry.address.len()) {
                self.begun.remove(&sector);
                self.bytes -= gone;
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_readers_has_a_bound() {
        let prefetches = Blocks::default();
        let each = BLOCK_BYTES / 16;
        for number in 0..64 {
            let first = Sector(number * (each as u64 / 512) % (32 << 11));
            let address = BufferAddress::contiguous(first, each as u32 / 512);
            prefetches.begin(address, 0).into_iter().flatten().for_each(Bio::succeed);
            let state = prefetches.state.lock();
            assert!(state.bytes <= BLOCK_BYTES, "{} bytes", state.bytes);
            assert!(state.order.len() <= 17 && state.begun.len() <= 16);
        }
        assert!(prefetches.state.lock().begun.len() == 16);
    }
}
