//! A pool of buffers under one byte budget: recycled memory and back-pressure.
//!
//! Sizes are rounded up to classes (powers of two pages), so a buffer that comes back fits the
//! next request of its class. The budget covers the memory in use and the memory kept for reuse;
//! kept memory is released before a caller has to wait. A caller that finds the budget spent
//! sleeps until buffers come back; before it sleeps, the plugs of its thread are flushed, so that
//! the bios it waits for are under way. Waiters are not served in order: the first to find room
//! takes it.
//!
//! A registrable pool takes its memory from one arena that a ring can register as a whole, so that
//! the kernel need not look up and pin the pages of every transfer. When the arena has no block
//! that is large enough the memory comes from the allocator as usual: the budget alone decides
//! whether a caller waits.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::allocation::{BUFFER_ALIGNMENT, Memory};
use super::arena::{Arena, ORDERS};
use super::buffer::Buffer;
use super::region::{Keeper, Region};
use crate::threads::Event;

/// Classes of 1, 2, 4, ... pages; the largest kept for reuse is 16 MiB, as is the largest block of
/// an arena. Larger buffers are charged to the budget too, but go back to the allocator.
const CLASSES: usize = ORDERS;

/// Hands out [`Buffer`]s; clones share one budget.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<PoolShared>,
}

/// What the handles of a pool and its buffers in flight share.
struct PoolShared {
    state: Mutex<PoolState>,
    returned: Event,
    budget: usize,
    arena: Option<Arc<Arena>>,
}

struct PoolState {
    /// Free memory by class, most recently used last (it is still in the cache).
    #[expect(clippy::vec_box, reason = "the box goes on to the buffer, no allocation is needed")]
    free: [Vec<Box<Region>>; CLASSES],
    /// Bytes in `free`.
    kept: usize,
    /// Bytes handed out.
    in_use: usize,
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (budget, in_use) = (self.shared.budget, self.bytes_in_use());
        f.debug_struct("BufferPool").field("budget", &budget).field("in_use", &in_use).finish()
    }
}

impl BufferPool {
    /// A pool that holds at most `budget` bytes, in use and kept for reuse together.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        Self::with_arena(budget, None)
    }

    /// A pool of `budget` bytes (rounded up to whole pages) in one allocation, which devices on
    /// io_uring register when they are opened with it. Registered memory is pinned, and counts
    /// against the limit on locked memory (`ulimit -l`) of users without privileges; a device
    /// that may not register it works without.
    #[must_use]
    pub fn registrable(budget: usize) -> Self {
        Self::with_arena(budget, Some(Arena::new(budget)))
    }

    fn with_arena(budget: usize, arena: Option<Arc<Arena>>) -> Self {
        let state = PoolState { free: Default::default(), kept: 0, in_use: 0 };
        Self {
            shared: Arc::new(PoolShared {
                state: Mutex::new(state),
                returned: Event::default(),
                budget,
                arena,
            }),
        }
    }

    /// The memory to register with a ring.
    pub(crate) fn arena(&self) -> Option<&Arc<Arena>> {
        self.shared.arena.as_ref()
    }

    /// A buffer of `length` bytes, as soon as the budget allows it.
    ///
    /// The contents are those of an earlier use: fill all of it, or use
    /// [`get_zeroed`](Self::get_zeroed). A buffer larger than the whole budget is granted when no
    /// other is in use, so that a small budget slows a caller down but cannot stop it.
    ///
    /// The caller must not hold buffers of this pool that only it could give back, or it may wait
    /// for itself; bios in its plugs are no concern, they are submitted before it sleeps.
    #[must_use]
    pub fn get(&self, length: usize) -> Buffer {
        self.buffer(self.wait_for(length), length)
    }

    /// A buffer of `length` bytes with unspecified contents; `None` when the budget is spent.
    #[must_use]
    pub fn try_get(&self, length: usize) -> Option<Buffer> {
        Some(self.buffer(self.try_take(length)?, length))
    }

    /// A buffer of `length` zero bytes, as soon as the budget allows it.
    #[must_use]
    pub fn get_zeroed(&self, length: usize) -> Buffer {
        let grant = self.wait_for(length);
        let used = matches!(grant, Grant::Used(_));
        let mut buffer = self.buffer(grant, length);
        if used {
            buffer.fill(0);
        }
        buffer
    }

    /// Bytes handed out and not yet returned, after rounding up to size classes.
    #[must_use]
    pub fn bytes_in_use(&self) -> usize {
        self.shared.state.lock().in_use
    }

    /// Charges a buffer of `length` bytes to the budget, if it allows that now.
    fn try_take(&self, length: usize) -> Option<Grant> {
        self.shared.take(&mut self.shared.state.lock(), rounded(length))
    }

    /// Charges a buffer of `length` bytes to the budget, as soon as it allows that.
    fn wait_for(&self, length: usize) -> Grant {
        if let Some(grant) = self.try_take(length) {
            return grant;
        }
        self.shared.returned.wait_unplugged(|| self.try_take(length))
    }

    /// Wraps granted memory; memory of the allocator is taken here, outside the lock.
    fn buffer(&self, grant: Grant, length: usize) -> Buffer {
        let region = match grant {
            Grant::Used(region) => region,
            Grant::Allocate(bytes) => Region::new(Memory::zeroed(bytes / BUFFER_ALIGNMENT)),
        };
        Buffer::front_of(region, length, Some(Arc::clone(&self.shared) as _))
    }
}

/// Memory charged to the budget.
enum Grant {
    /// With unspecified contents.
    Used(Box<Region>),
    /// So many bytes are to be had from the allocator.
    Allocate(usize),
}

impl PoolShared {
    /// Charges `bytes` (a rounded length) if the budget allows it.
    fn take(&self, state: &mut PoolState, bytes: usize) -> Option<Grant> {
        if state.in_use > 0 && state.in_use.saturating_add(bytes) > self.budget {
            return None;
        }
        let class = class(bytes);
        if let Some(region) = class.and_then(|class| state.free[class].pop()) {
            state.kept -= bytes;
            state.in_use += bytes;
            return Some(Grant::Used(region));
        }
        state.in_use += bytes;
        state.release_kept(self.budget);
        let block = class.zip(self.arena.as_ref()).and_then(|(order, arena)| {
            arena.take(order).or_else(|| {
                // Kept blocks of other sizes may join to one of this size.
                state.release_kept(0);
                arena.take(order)
            })
        });
        Some(block.map_or(Grant::Allocate(bytes), |memory| Grant::Used(Region::new(memory))))
    }
}

impl Keeper for PoolShared {
    /// Takes the memory of dropped buffers back and wakes the threads that wait for it.
    fn keep(&self, region: Box<Region>) {
        let bytes = region.bytes();
        let mut state = self.state.lock();
        state.in_use -= bytes;
        if let Some(class) = class(bytes)
            && state.in_use.saturating_add(state.kept).saturating_add(bytes) <= self.budget
        {
            state.kept += bytes;
            state.free[class].push(region);
        }
        drop(state);
        // Waiters ask for different sizes, so each has to look for itself.
        self.returned.notify();
    }
}

impl PoolState {
    /// Gives kept memory back, largest first, until `budget` bytes hold the rest of it and the
    /// memory in use.
    fn release_kept(&mut self, budget: usize) {
        for list in self.free.iter_mut().rev() {
            while self.kept > 0 && self.in_use.saturating_add(self.kept) > budget {
                let Some(region) = list.pop() else { break };
                self.kept -= region.bytes();
            }
        }
    }
}

/// The bytes charged for a buffer of `length` bytes.
fn rounded(length: usize) -> usize {
    let pages = length.div_ceil(BUFFER_ALIGNMENT).max(1);
    let pages = if pages <= 1 << (CLASSES - 1) { pages.next_power_of_two() } else { pages };
    pages.saturating_mul(BUFFER_ALIGNMENT)
}

/// The free list for buffers of `bytes` bytes, a result of [`rounded`].
fn class(bytes: usize) -> Option<usize> {
    let pages = bytes / BUFFER_ALIGNMENT;
    (pages <= 1 << (CLASSES - 1)).then(|| pages.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_used_again() {
        let pool = BufferPool::new(1 << 20);
        let buffer = pool.get(5000);
        let address = buffer.as_ptr();
        assert_eq!(pool.bytes_in_use(), 8192);
        drop(buffer);
        assert_eq!(pool.bytes_in_use(), 0);
        assert_eq!(pool.get(8192).as_ptr(), address);
    }

    #[test]
    fn recycled_memory_can_be_asked_for_zeroed() {
        let pool = BufferPool::new(1 << 20);
        pool.get(4096).fill(7);
        assert!(pool.get_zeroed(4096).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn kept_memory_gives_way_to_other_sizes() {
        let pool = BufferPool::new(64 << 10);
        drop(pool.get(64 << 10));
        let small: Vec<_> = (0..16).map(|_| pool.get(4096)).collect();
        assert_eq!(pool.bytes_in_use(), 64 << 10);
        assert_eq!(pool.shared.state.lock().kept, 0);
        drop(small);
    }

    #[test]
    fn a_spent_budget_waits_for_a_return() {
        let pool = BufferPool::new(8192);
        let held = pool.get(8192);
        assert!(pool.try_get(1).is_none());
        let waiting = std::thread::spawn({
            let pool = pool.clone();
            move || pool.get(4096).len()
        });
        drop(held);
        assert_eq!(waiting.join().unwrap(), 4096);
    }

    #[test]
    fn a_registrable_pool_hands_out_its_arena_and_then_other_memory() {
        let pool = BufferPool::registrable(64 << 10);
        let arena = pool.arena().unwrap();
        let piece_of = |buffer: &Buffer| arena.piece_of(buffer.as_ptr().addr(), buffer.len());
        let small: Vec<_> = (0..12).map(|_| pool.get(4096)).collect();
        assert!(small.iter().all(|buffer| piece_of(buffer) == Some(0)));
        let mut whole = pool.get(16 << 10);
        assert_eq!(piece_of(&whole), Some(0));
        assert!(pool.try_get(1).is_none(), "the budget is spent");
        let part = whole.split_off(4096);
        drop((small, whole));
        assert_eq!(pool.bytes_in_use(), 16 << 10, "a part keeps all of it");
        drop(part);
        // Kept blocks join again; a size the arena never has comes from elsewhere.
        assert_eq!(piece_of(&pool.get(64 << 10)), Some(0));
        assert_eq!(piece_of(&pool.get(128 << 10)), None);
        assert!(pool.get_zeroed(64 << 10).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_buffer_beyond_the_budget_is_granted_alone() {
        let pool = BufferPool::new(4096);
        let huge = pool.get(20 << 20);
        assert_eq!(huge.len(), 20 << 20);
        assert!(pool.try_get(1).is_none());
        drop(huge);
        assert!(pool.try_get(1).is_some());
    }
}
