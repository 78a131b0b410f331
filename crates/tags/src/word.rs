//! One word of the bitmap: which of its bits are busy, and which are never given out.

use crate::layout::low_bits;
use crate::sync::{AtomicU64, Ordering};

/// At most 64 bits. `blocked`, those beyond the depth, lies beside `bits`, so the look at it costs no
/// further cache line.
#[derive(Debug)]
pub(crate) struct Word {
    bits: AtomicU64,
    blocked: u64,
}

impl Word {
    /// With all bits free but those in `blocked`.
    pub(crate) fn new(blocked: u64) -> Self {
        Self { bits: AtomicU64::new(0), blocked }
    }

    /// The bits that were free a moment ago.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        !(self.bits.load(Ordering::Relaxed) | self.blocked)
    }

    /// The bits that were busy a moment ago.
    pub(crate) fn busy(&self) -> u64 {
        self.bits.load(Ordering::Relaxed)
    }

    /// Takes `bit` (a mask of one bit) if it is free and not blocked, without a look at the busy bits
    /// first: right for a bit that is likely free, since it saves the wait for that load.
    ///
    /// Acquire pairs with the release in [`Word::clear`]: what the last holder did with the tag is
    /// seen by the next (invariant I2).
    #[inline(always)]
    pub(crate) fn take(&self, bit: u64) -> bool {
        self.blocked & bit == 0 && self.bits.fetch_or(bit, Ordering::Acquire) & bit == 0
    }

    /// Takes the first free bit; returns its number.
    #[inline]
    pub(crate) fn take_first(&self) -> Option<u32> {
        loop {
            let free = self.free();
            if free == 0 {
                return None;
            }
            let bit = free & free.wrapping_neg();
            if self.bits.fetch_or(bit, Ordering::Acquire) & bit == 0 {
                return Some(free.trailing_zeros());
            }
        }
    }

    /// Takes those bits that are free among the `count` places from the first free one. Returns exactly the bits that this call set, none if there is no free one: a lost race takes
    /// nothing and tries again.
    pub(crate) fn take_run(&self, count: u32) -> u64 {
        let mut bits = self.bits.load(Ordering::Relaxed);
        loop {
            let free = !(bits | self.blocked);
            if free == 0 || count == 0 {
                return 0;
            }
            let wanted = free & (low_bits(count) << free.trailing_zeros());
            match self.bits.compare_exchange(
                bits,
                bits | wanted,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return wanted,
                Err(now) => bits = now,
            }
        }
    }

    /// Frees the bits in `mask`. The order is that of the put in [`crate::sync`].
    #[inline(always)]
    pub(crate) fn clear(&self, mask: u64) {
        self.bits.fetch_and(!mask, Ordering::SeqCst);
    }
}
