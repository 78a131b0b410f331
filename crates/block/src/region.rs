//! A piece of allocated memory and the parts it was cut into: who frees it, and when.
//!
//! [`Buffer`](crate::Buffer)s and [`Segment`](crate::Segment)s point into a region and hold a
//! [`Share`] of it. A share says nothing about which bytes may be read or written (that is for its
//! holder to keep track of); it keeps them allocated, and the last share gives them back: to the
//! pool they came from, or to the allocator.
#![allow(unsafe_code, reason = "allocation, and a reference count whose last owner keeps the box")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::arena::Arena;
use crate::pool::PoolShared;

/// Alignment of every buffer in bytes, and the unit in which memory is allocated.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// Initialised memory of whole pages, owned by whoever holds this: nobody else points into it.
pub(crate) struct Memory {
    start: NonNull<u8>,
    /// A multiple of [`BUFFER_ALIGNMENT`], at most `isize::MAX`.
    bytes: usize,
    /// The arena it is part of; `None` if it is an allocation by itself.
    arena: Option<Arc<Arena>>,
}

// SAFETY: the memory is owned, as that of a `Box<[u8]>` is, and not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives away an address and a length, no access to the bytes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `pages` zeroed pages; none take no memory.
    ///
    /// Out of memory ends the process, as for every allocation of the standard library.
    pub(crate) fn zeroed(pages: usize) -> Self {
        let bytes = pages.saturating_mul(BUFFER_ALIGNMENT);
        if bytes == 0 {
            return Self { start: NonNull::<Page>::dangling().cast(), bytes, arena: None };
        }
        let Some(layout) = Self::layout(bytes) else {
            handle_alloc_error(Layout::new::<Page>());
        };
        // SAFETY: the layout is not of zero bytes.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, arena: None }
    }

    /// How memory of `bytes` bytes is allocated; `None` for more than an address space holds.
    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, BUFFER_ALIGNMENT).ok()
    }

    /// The `bytes` bytes from `offset` on of the memory of `arena`, which gives them to nobody
    /// else until they come back.
    pub(crate) fn part_of(arena: &Arc<Arena>, offset: usize, bytes: usize) -> Self {
        let whole = arena.memory();
        assert!(offset <= whole.bytes && bytes <= whole.bytes - offset, "a part of an arena");
        // SAFETY: inside the allocation, as was just checked.
        let start = unsafe { whole.start.add(offset) };
        Self { start, bytes, arena: Some(Arc::clone(arena)) }
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes, whole pages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(arena) = self.arena.take() {
            // Not negative: the address lies in the arena.
            let offset = self.start.addr().get() - arena.memory().start.addr().get();
            arena.give_back(offset, self.bytes);
        } else if self.bytes > 0
            && let Some(layout) = Self::layout(self.bytes)
        {
            // SAFETY: allocated in `zeroed` with this layout, and owned by this value alone.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// A page, for its alignment.
#[repr(align(4096))]
struct Page;

/// Memory, how many shares of it exist, and where it goes afterwards.
pub(crate) struct Region {
    shares: AtomicUsize,
    memory: Memory,
    /// `None` while it lies in a pool, or if it never came from one.
    pool: Option<Arc<PoolShared>>,
}

impl Region {
    /// A region nobody has a share of yet.
    pub(crate) fn new(memory: Memory) -> Box<Self> {
        Box::new(Self { shares: AtomicUsize::new(0), memory, pool: None })
    }

    /// Length in bytes, whole pages.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// The first share; the last one to go gives the region to `pool`, if there is one.
    pub(crate) fn share(mut self: Box<Self>, pool: Option<Arc<PoolShared>>) -> Share {
        *self.shares.get_mut() = 1;
        self.pool = pool;
        Share(NonNull::from(Box::leak(self)))
    }
}

/// One of the owners of a region. Clones are further owners.
pub(crate) struct Share(NonNull<Region>);

// SAFETY: as for an `Arc<Region>`; a region is Send and Sync.
unsafe impl Send for Share {}
// SAFETY: as above.
unsafe impl Sync for Share {}

impl Share {
    fn region(&self) -> &Region {
        // SAFETY: the region lives until its last share is dropped, and this is one; until then
        // nobody has it by exclusive reference.
        unsafe { self.0.as_ref() }
    }

    /// Address of the first byte of the whole region.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.region().memory.start
    }

    /// Whether no other share of the region exists.
    pub(crate) fn is_only(&self) -> bool {
        // Acquire: what the owners of earlier shares did to the bytes happened before.
        self.region().shares.load(Ordering::Acquire) == 1
    }

    /// Whether both are of one region.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Whether the region goes to a pool in the end.
    pub(crate) fn is_pooled(&self) -> bool {
        self.region().pool.is_some()
    }
}

impl Clone for Share {
    fn clone(&self) -> Self {
        // Relaxed: the new share comes from one that exists, so the count cannot reach zero here.
        let before = self.region().shares.fetch_add(1, Ordering::Relaxed);
        if before > isize::MAX as usize {
            // So many can only be leaked ones; a count that wraps would free memory in use.
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // The only share needs no atomic change: nobody else could change the count.
        if !self.is_only() {
            // Release: what this owner did to the bytes happens before the next use.
            if self.region().shares.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // SAFETY: leaked in `share`; the last share is this one, and it is not used again.
        let mut region = unsafe { Box::from_raw(self.0.as_ptr()) };
        if let Some(pool) = region.pool.take() {
            pool.put(region);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_many_shares_frees() {
        let share = Region::new(Memory::zeroed(2)).share(None);
        assert!(share.is_only());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let share = share.clone();
                scope.spawn(move || drop(share.clone()));
            }
        });
        assert!(share.is_only());
    }

    #[test]
    fn nothing_takes_no_memory_and_is_aligned() {
        let memory = Memory::zeroed(0);
        assert_eq!(memory.bytes(), 0);
        assert!(memory.start().addr().get().is_multiple_of(BUFFER_ALIGNMENT));
    }
}
