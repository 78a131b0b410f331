//! The locks of `parking_lot` with a rank: each method updates the thread's list.
#![allow(unsafe_code, reason = "the traits that make a lock of these are unsafe")]

use std::ptr;

use parking_lot::lock_api::{GuardNoSend, RawMutex, RawRwLock, RawRwLockDowngrade};

use crate::OrderedMutex;
use crate::held::{self, Mode};
use crate::order;

/// What [`OrderedMutex`] locks.
#[repr(transparent)]
pub struct RawOrderedMutex<const RANK: u8> {
    raw: parking_lot::RawMutex,
}

/// What [`OrderedRwLock`](crate::OrderedRwLock) locks.
#[repr(transparent)]
pub struct RawOrderedRwLock<const RANK: u8> {
    raw: parking_lot::RawRwLock,
}

/// The address under which a mutex is in the list.
#[inline]
pub(crate) fn address<T: ?Sized, const RANK: u8>(mutex: &OrderedMutex<T, RANK>) -> usize {
    // SAFETY: nothing is locked or unlocked through this reference, only its address is taken.
    ptr::from_ref(unsafe { mutex.raw() }).addr()
}

impl<const RANK: u8> RawOrderedMutex<RANK> {
    #[inline]
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }
}

// SAFETY: each call locks or unlocks the lock of `parking_lot` inside once, so this is as exclusive
// as that is. A check that panics does so before the lock is taken, and never where `lock_api`
// takes a lock again for a guard that exists (`relock`).
unsafe impl<const RANK: u8> RawMutex for RawOrderedMutex<RANK> {
    const INIT: Self = Self { raw: parking_lot::RawMutex::INIT };

    type GuardMarker = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        order::block(self.address(), RANK, Mode::Exclusive, || self.raw.lock());
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> bool {
        held::attempt(self.address(), RANK, Mode::Exclusive, || self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self) {
        held::released(self.address());
        // SAFETY: the caller holds this lock, which is the lock inside.
        unsafe { self.raw.unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

impl<const RANK: u8> RawOrderedRwLock<RANK> {
    #[inline]
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }
}

// SAFETY: as for the mutex: the lock inside does the work, and a check panics only while no guard
// stands for the lock that it is about.
unsafe impl<const RANK: u8> RawRwLock for RawOrderedRwLock<RANK> {
    const INIT: Self = Self { raw: parking_lot::RawRwLock::INIT };

    type GuardMarker = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        order::block(self.address(), RANK, Mode::Shared, || self.raw.lock_shared());
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        held::attempt(self.address(), RANK, Mode::Shared, || self.raw.try_lock_shared())
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        held::released(self.address());
        // SAFETY: the caller holds this lock with others, which is the lock inside.
        unsafe { self.raw.unlock_shared() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) {
        order::block(self.address(), RANK, Mode::Exclusive, || self.raw.lock_exclusive());
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        held::attempt(self.address(), RANK, Mode::Exclusive, || self.raw.try_lock_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        held::released(self.address());
        // SAFETY: the caller holds this lock alone, which is the lock inside.
        unsafe { self.raw.unlock_exclusive() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

// SAFETY: the lock inside goes from exclusive to shared without a gap.
unsafe impl<const RANK: u8> RawRwLockDowngrade for RawOrderedRwLock<RANK> {
    #[inline]
    unsafe fn downgrade(&self) {
        held::downgraded(self.address());
        // SAFETY: the caller holds this lock alone, which is the lock inside.
        unsafe { self.raw.downgrade() };
    }
}
