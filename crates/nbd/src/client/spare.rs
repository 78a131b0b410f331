//! Memory for copies of writes, used again: memory that is new to the process costs more than the
//! copy.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use undercroft_block::Request;

/// Shorter copies are left to the allocator.
const SHORTEST: usize = 4 << 10;

/// Memory of copies that are not needed any more.
#[derive(Debug, Default)]
pub(super) struct Spare {
    state: Mutex<SpareState>,
}

#[derive(Debug, Default)]
struct SpareState {
    /// By length.
    memory: HashMap<usize, Vec<Arc<[u8]>>>,
    bytes: u64,
    /// Some was used since the last look.
    used: bool,
}

impl Spare {
    /// The bytes of a write.
    pub(super) fn copy(&self, request: &Request) -> Arc<[u8]> {
        // The length fits a request, which limits bound.
        let length = request.length() as usize;
        if let Some(mut memory) = self.get(length)
            && let Some(mut rest) = Arc::get_mut(&mut memory)
        {
            for piece in request.gather() {
                let (here, behind) = rest.split_at_mut(piece.len());
                here.copy_from_slice(piece);
                rest = behind;
            }
            return memory;
        }
        let mut pieces = request.gather();
        let (first, second) = (pieces.next(), pieces.next());
        if let (Some(first), None) = (first, second) {
            return first.into();
        }
        drop(pieces);
        let mut bytes = Vec::with_capacity(length);
        request.gather().for_each(|piece| bytes.extend_from_slice(piece));
        bytes.into()
    }

    fn get(&self, length: usize) -> Option<Arc<[u8]>> {
        if length < SHORTEST {
            return None;
        }
        let mut state = self.state.lock();
        let memory = state.memory.get_mut(&length)?.pop()?;
        state.used = true;
        state.bytes -= length as u64;
        Some(memory)
    }

    /// Keeps the `memory` that has no other owner, as long as it is `most` bytes in all.
    pub(super) fn put(&self, memory: impl IntoIterator<Item = Arc<[u8]>>, most: u64) {
        let mut state = self.state.lock();
        for mut memory in memory {
            let bytes = memory.len() as u64;
            let is_long = memory.len() >= SHORTEST;
            if is_long && state.bytes + bytes <= most && Arc::get_mut(&mut memory).is_some() {
                state.bytes += bytes;
                state.memory.entry(memory.len()).or_default().push(memory);
            }
        }
    }

    /// Frees what was not used since this was called last.
    pub(super) fn shrink(&self) {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.used) {
            (state.memory, state.bytes) = (HashMap::new(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(length: usize) -> Arc<[u8]> {
        vec![7; length].into()
    }

    #[test]
    fn memory_of_the_same_length_is_used_again() {
        let spare = Spare::default();
        let (one, other) = (memory(SHORTEST), memory(SHORTEST));
        let place = one.as_ptr();
        spare.put([one, Arc::clone(&other), memory(SHORTEST - 1)], 1 << 20);
        assert!(spare.get(SHORTEST - 1).is_none(), "too short");
        assert!(spare.get(SHORTEST + 1).is_none());
        assert_eq!(spare.get(SHORTEST).map(|memory| memory.as_ptr()), Some(place));
        assert!(spare.get(SHORTEST).is_none(), "the other one has another owner");
    }

    #[test]
    fn it_is_bounded_and_goes_when_it_is_not_used() {
        let spare = Spare::default();
        let most = 2 * SHORTEST as u64;
        spare.put((0..3).map(|_| memory(SHORTEST)), most);
        assert_eq!(spare.state.lock().memory[&SHORTEST].len(), 2);
        assert!(spare.get(SHORTEST).is_some());
        spare.shrink();
        assert_eq!(spare.state.lock().bytes, SHORTEST as u64, "it is in use");
        spare.shrink();
        assert!(spare.get(SHORTEST).is_none());
    }
}
