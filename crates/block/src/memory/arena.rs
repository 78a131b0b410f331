//! One large allocation that a pool cuts its buffers from, so that a ring can register it whole.
//!
//! A buddy allocator: blocks of 2^n pages at multiples of their size, halved to serve smaller
//! ones and joined with their other half when both are free (Knowlton, 1965).

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::allocation::{BUFFER_ALIGNMENT, Lender, Memory};

/// Blocks of 1, 2, 4, ... pages; the largest is 16 MiB.
pub(crate) const ORDERS: usize = 13;

/// Most bytes of one piece that a ring registers (`UIO_MAXIOV` pieces of 1 GiB each, in Linux).
const REGISTERED_PIECE: usize = 1 << 30;

/// The allocation, and which blocks of it are free.
pub(crate) struct Arena {
    memory: Memory,
    /// Numbers of the first pages of free blocks, by order.
    free: Mutex<[BTreeSet<usize>; ORDERS]>,
}

impl Arena {
    /// An arena of `bytes` bytes, rounded up to whole pages.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        let pages = bytes.div_ceil(BUFFER_ALIGNMENT);
        let mut free: [BTreeSet<usize>; ORDERS] = Default::default();
        let mut first = 0;
        while first < pages {
            // The largest block that is aligned to its size and fits.
            let fitting = (pages - first).ilog2();
            let order = (first.trailing_zeros().min(fitting) as usize).min(ORDERS - 1);
            free[order].insert(first);
            first += 1 << order;
        }
        Arc::new(Self { memory: Memory::zeroed(pages), free: Mutex::new(free) })
    }

    /// A block of 2^`order` pages with any contents; `None` when there is none.
    pub(crate) fn take(self: &Arc<Self>, order: usize) -> Option<Memory> {
        let mut free = self.free.lock();
        let found = (order..ORDERS).find(|&larger| !free[larger].is_empty())?;
        let first = free[found].pop_first()?;
        // The lower half is used, the upper halves of each size become free.
        for smaller in order..found {
            free[smaller].insert(first + (1 << smaller));
        }
        drop(free);
        Some(Memory::part_of(
            Arc::clone(self) as _,
            first * BUFFER_ALIGNMENT,
            BUFFER_ALIGNMENT << order,
        ))
    }

    /// The pieces to register with a ring, in order: addresses and lengths in bytes.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        let start = self.memory.start().addr().get();
        let end = start + self.memory.bytes();
        (start..end)
            .step_by(REGISTERED_PIECE)
            .map(move |piece| piece..end.min(piece + REGISTERED_PIECE))
    }

    /// Which of the [`pieces`](Self::pieces) holds all of the `length` bytes at `address`, if one
    /// does.
    pub(crate) fn piece_of(&self, address: usize, length: usize) -> Option<u16> {
        let offset = address.checked_sub(self.memory.start().addr().get())?;
        let last = offset.checked_add(length)?.checked_sub(1)?;
        let piece = offset / REGISTERED_PIECE;
        let inside = last < self.memory.bytes() && piece == last / REGISTERED_PIECE;
        inside.then(|| u16::try_from(piece).ok()).flatten()
    }
}

impl Lender for Arena {
    fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The part is a result of [`take`](Self::take).
    fn give_back(&self, offset: usize, bytes: usize) {
        let mut first = offset / BUFFER_ALIGNMENT;
        let mut order = (bytes / BUFFER_ALIGNMENT).trailing_zeros() as usize;
        let mut free = self.free.lock();
        while order + 1 < ORDERS && free[order].remove(&(first ^ (1 << order))) {
            first &= !(1 << order);
            order += 1;
        }
        free[order].insert(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Orders of the free blocks, with how many there are.
    fn free(arena: &Arena) -> Vec<(usize, usize)> {
        let free = arena.free.lock();
        (0..ORDERS)
            .map(|order| (order, free[order].len()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    #[test]
    fn blocks_are_halved_and_joined_again() {
        let arena = Arena::new(11 * BUFFER_ALIGNMENT);
        assert_eq!(free(&arena), [(0, 1), (1, 1), (3, 1)]);
        let taken: Vec<_> = (0..11).map(|_| arena.take(0).unwrap()).collect();
        assert!(arena.take(0).is_none());
        let mut addresses: Vec<_> = taken.iter().map(|memory| memory.start().addr()).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 11);
        drop(taken);
        assert_eq!(free(&arena), [(0, 1), (1, 1), (3, 1)]);
    }

    #[test]
    fn a_block_that_does_not_fit_is_refused() {
        let arena = Arena::new(8 * BUFFER_ALIGNMENT);
        let small = arena.take(0).unwrap();
        assert!(arena.take(3).is_none());
        let half = arena.take(2).unwrap();
        assert_eq!(half.bytes(), 4 * BUFFER_ALIGNMENT);
        drop((small, half));
        assert!(arena.take(3).is_some());
    }

    #[test]
    fn bytes_belong_to_a_piece_only_if_all_lie_in_it() {
        let arena = Arena::new(4 * BUFFER_ALIGNMENT);
        let lengths: Vec<_> = arena.pieces().map(|piece| piece.len()).collect();
        assert_eq!(lengths, [4 * BUFFER_ALIGNMENT]);
        let start = arena.memory().start().addr().get();
        assert_eq!(arena.piece_of(start, 4 * BUFFER_ALIGNMENT), Some(0));
        assert_eq!(arena.piece_of(start, 4 * BUFFER_ALIGNMENT + 1), None);
        assert_eq!(arena.piece_of(start - 1, 2), None);
        assert_eq!(arena.piece_of(start, 0), None);
    }
}
