//! A pool of buffers under one byte budget: recycled memory and back-pressure.
//!
//! Sizes are rounded up to classes (powers of two pages), so a buffer that comes back fits the
//! next request of its class. The budget covers the memory in use and the memory kept for reuse;
//! kept memory is released before a caller has to wait. A caller that finds the budget spent
//! sleeps until buffers come back; before it sleeps, the plugs of its thread are flushed, so that
//! the bios it waits for are under way. Those who wait are not served in order: whoever finds room
//! first takes it.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::buffer::{BUFFER_ALIGNMENT, Buffer, Page, zeroed_pages};
use crate::plug;

/// Classes of 1, 2, 4, ... pages; the largest kept for reuse is 16 MiB. Larger buffers are charged
/// to the budget too, but go back to the allocator.
const CLASSES: usize = 13;

/// Hands out [`Buffer`]s; clones share one budget.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<PoolShared>,
}

/// What the handles of a pool and its buffers in flight share.
pub(crate) struct PoolShared {
    state: Mutex<PoolState>,
    returned: Condvar,
    budget: usize,
}

struct PoolState {
    /// Free buffers by class, most recently used last (its memory is still in the cache).
    free: [Vec<Box<[Page]>>; CLASSES],
    /// Bytes in `free`.
    kept: usize,
    /// Bytes handed out.
    in_use: usize,
}

impl BufferPool {
    /// A pool that holds at most `budget` bytes, in use and kept for reuse together.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        let state = PoolState { free: Default::default(), kept: 0, in_use: 0 };
        Self {
            shared: Arc::new(PoolShared {
                state: Mutex::new(state),
                returned: Condvar::new(),
                budget,
            }),
        }
    }

    /// A buffer of `length` bytes, as soon as the budget allows it.
    ///
    /// The contents are whatever an earlier user left: fill all of it, or use
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
        let recycled = matches!(grant, Grant::Recycled(_));
        let mut buffer = self.buffer(grant, length);
        if recycled {
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
        self.shared.state.lock().take(rounded(length), self.shared.budget)
    }

    /// Charges a buffer of `length` bytes to the budget, as soon as it allows that.
    fn wait_for(&self, length: usize) -> Grant {
        if let Some(grant) = self.try_take(length) {
            return grant;
        }
        plug::flush_thread();
        let mut state = self.shared.state.lock();
        loop {
            if let Some(grant) = state.take(rounded(length), self.shared.budget) {
                return grant;
            }
            self.shared.returned.wait(&mut state);
        }
    }

    /// Wraps granted memory; memory that is not recycled is allocated here, outside the lock.
    fn buffer(&self, grant: Grant, length: usize) -> Buffer {
        let pages = match grant {
            Grant::Recycled(pages) => pages,
            Grant::Allocate(bytes) => zeroed_pages(bytes / BUFFER_ALIGNMENT),
        };
        Buffer::pooled(pages, length, Arc::clone(&self.shared))
    }
}

/// Memory charged to the budget.
enum Grant {
    Recycled(Box<[Page]>),
    Allocate(usize),
}

impl PoolState {
    /// Charges `bytes` (a rounded length) if the budget allows it.
    fn take(&mut self, bytes: usize, budget: usize) -> Option<Grant> {
        if self.in_use > 0 && self.in_use.saturating_add(bytes) > budget {
            return None;
        }
        if let Some(pages) = class(bytes).and_then(|class| self.free[class].pop()) {
            self.kept -= bytes;
            self.in_use += bytes;
            return Some(Grant::Recycled(pages));
        }
        self.in_use += bytes;
        self.release_kept(budget);
        Some(Grant::Allocate(bytes))
    }

    /// Gives kept memory back to the allocator, largest first, until the budget holds.
    fn release_kept(&mut self, budget: usize) {
        for list in self.free.iter_mut().rev() {
            while self.in_use.saturating_add(self.kept) > budget {
                let Some(pages) = list.pop() else { break };
                self.kept -= pages.len() * BUFFER_ALIGNMENT;
            }
        }
    }
}

impl PoolShared {
    /// Takes the memory of a dropped buffer back and wakes who waits for it.
    pub(crate) fn put(&self, pages: Box<[Page]>) {
        let bytes = pages.len() * BUFFER_ALIGNMENT;
        let mut state = self.state.lock();
        state.in_use -= bytes;
        if let Some(class) = class(bytes)
            && state.in_use.saturating_add(state.kept).saturating_add(bytes) <= self.budget
        {
            state.kept += bytes;
            state.free[class].push(pages);
        }
        drop(state);
        // Waiters ask for different sizes, so each has to look for itself.
        self.returned.notify_all();
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
    fn a_buffer_beyond_the_budget_is_granted_alone() {
        let pool = BufferPool::new(4096);
        let huge = pool.get(20 << 20);
        assert_eq!(huge.len(), 20 << 20);
        assert!(pool.try_get(1).is_none());
        drop(huge);
        assert!(pool.try_get(1).is_some());
    }
}
