//! A piece of allocated memory and the parts it was cut into: what frees it, and when.
//!
//! [`Buffer`](crate::Buffer)s and [`Segment`](crate::Segment)s point into a region and hold a
//! [`Share`] of it. A share says nothing about which bytes may be read or written (that is for its
//! holder to keep track of); it keeps them allocated, and the last share gives them back: to the
//! pool they came from, or to the allocator.
#![allow(unsafe_code, reason = "a reference count whose last owner keeps the box")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use super::allocation::Memory;

/// Where memory goes when its last share is dropped, if not to the allocator.
pub(crate) trait Keeper: Send + Sync {
    /// Takes the region for later use.
    fn keep(&self, region: Box<Region>);
}

/// Memory, the count of its shares, and the pool that gets it afterwards.
pub(crate) struct Region {
    shares: AtomicUsize,
    memory: Memory,
    /// `None` while it lies in a pool, or if it never came from one.
    pool: Option<Arc<dyn Keeper>>,
}

impl Region {
    /// A region without a share.
    pub(crate) fn new(memory: Memory) -> Box<Self> {
        Box::new(Self { shares: AtomicUsize::new(0), memory, pool: None })
    }

    /// Length in bytes, whole pages.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The first share; the last one to go gives the region to `pool`, if there is one.
    pub(crate) fn share(mut self: Box<Self>, pool: Option<Arc<dyn Keeper>>) -> Share {
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
        // there is no exclusive reference to it.
        unsafe { self.0.as_ref() }
    }

    /// Address of the first byte of the whole region.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.region().memory.start()
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
        // The only share needs no atomic change: no other owner could change the count.
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
            pool.keep(region);
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
}
