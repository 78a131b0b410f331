//! Memory for copies of writes, used again: memory that is new to the process costs more than the
//! copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::Request;

use super::copied_bytes::{CopiedBytes, FRONT};

/// Shorter copies are left to the allocator.
const SHORTEST: usize = 4 << 10;

/// Memory of copies that are not needed any more.
#[derive(Debug, Default)]
pub(crate) struct BufferCache {
    state: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    /// By capacity; no list is empty.
    memory: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sum of the capacities.
    bytes: u64,
    /// Some was used since the last look.
    used: bool,
}

impl BufferCache {
    /// The bytes of a write.
    pub(crate) fn copy(&self, request: &Request) -> Arc<CopiedBytes> {
        // The length fits a request, which limits bound.
        let length = request.length() as usize;
        let memory = self.get(length + FRONT).unwrap_or_default();
        Arc::new(CopiedBytes::new(request.gather(), length, memory))
    }

    /// Memory for `length` bytes, a quarter more at most: lengths differ, and longer copies need theirs.
    fn get(&self, length: usize) -> Option<Vec<u8>> {
        if length < SHORTEST {
            return None;
        }
        let mut state = self.state.lock();
        let (&capacity, list) = state.memory.range_mut(length..=length + length / 4).next()?;
        let memory = list.pop()?;
        if list.is_empty() {
            state.memory.remove(&capacity);
        }
        state.used = true;
        state.bytes -= capacity as u64;
        Some(memory)
    }

    /// Keeps the memory of the `copies` that have no other owner, as long as it is `most` bytes in all.
    pub(crate) fn put(&self, copies: impl IntoIterator<Item = Arc<CopiedBytes>>, most: u64) {
        let mut state = self.state.lock();
        let copies = copies.into_iter().filter_map(Arc::into_inner);
        for memory in copies.map(CopiedBytes::into_memory) {
            let capacity = memory.capacity();
            if capacity >= SHORTEST && state.bytes + capacity as u64 <= most {
                state.bytes += capacity as u64;
                state.memory.entry(capacity).or_default().push(memory);
            }
        }
    }

    /// Frees what was not used since this was called last.
    pub(crate) fn shrink(&self) {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.used) {
            (state.memory, state.bytes) = (BTreeMap::new(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(length: usize) -> Arc<CopiedBytes> {
        Arc::new(vec![7; length].into())
    }

    #[test]
    fn memory_that_fits_is_used_again() {
        let buffers = BufferCache::default();
        let (one, other) = (memory(SHORTEST), memory(SHORTEST));
        let place = one.as_ptr();
        buffers.put([one, Arc::clone(&other), memory(SHORTEST - 1)], 1 << 20);
        assert!(buffers.get(SHORTEST - 1).is_none(), "too short");
        assert!(buffers.get(SHORTEST + 1).is_none());
        assert_eq!(buffers.get(SHORTEST).map(|memory| memory.as_ptr()), Some(place));
        assert!(buffers.get(SHORTEST).is_none(), "the other one has another owner");
        buffers.put([memory(5 * SHORTEST), memory(6 * SHORTEST)], 1 << 20);
        assert_eq!(buffers.get(4 * SHORTEST).map(|memory| memory.capacity()), Some(5 * SHORTEST));
        assert!(buffers.get(4 * SHORTEST).is_none(), "it is too long");
        assert!(buffers.get(5 * SHORTEST).is_some());
        assert_eq!(buffers.state.lock().bytes, 0);
    }

    #[test]
    fn it_is_bounded_and_goes_when_it_is_not_used() {
        let buffers = BufferCache::default();
        let most = 2 * SHORTEST as u64;
        buffers.put((0..3).map(|_| memory(SHORTEST)), most);
        assert_eq!(buffers.state.lock().memory[&SHORTEST].len(), 2);
        assert!(buffers.get(SHORTEST).is_some());
        buffers.shrink();
        assert_eq!(buffers.state.lock().bytes, SHORTEST as u64, "it is in use");
        buffers.shrink();
        assert!(buffers.get(SHORTEST).is_none());
    }
}
