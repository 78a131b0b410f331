//! Atomics, locks and sleep, as the real ones or as those of a model checker, and the two barriers
//! that the protocol rests on.
//!
//! Three builds share all other code. The normal one uses the standard library. With
//! `--cfg loom` every interleaving and every weak-memory outcome of a small case is tried; with
//! `--cfg shuttle` many random interleavings of a larger one, and shared writes are counted.
//!
//! # Invariant I1: one of the two sees the other
//!
//! A waiter publishes itself, then looks again for a tag. A put clears the bit, then looks for
//! waiters. If both looked before the other's write arrived, the waiter would sleep beside a free
//! tag. Between write and look there must be a full barrier on both sides (Dekker's pattern):
//!
//! - the waiter has [`barrier_after_publish`], an explicit `fence(SeqCst)`; it is about to sleep,
//!   so the price does not matter;
//! - the put clears the bit with a `SeqCst` read-modify-write *A* and reads the number of waiters
//!   with a `SeqCst` load *B*. The waiter raises that number (*C*), passes its fence *F*, and reads
//!   the word (*D*). Suppose neither sees the other. *B* reads a value older than *C*, and *C*
//!   comes before *F*, so *B* precedes *F* in the total order of `SeqCst` operations. *D* reads a
//!   value older than *A*, and *F* comes before *D*, so *F* precedes *A*. *A* precedes *B* in
//!   program order. That is a cycle, so it cannot happen (C++20, atomics.order, paragraph 4).
//!
//! On x86 *A* is the locked instruction that clears the bit and *B* a plain load: the put pays for
//! no fence. Loom knows the order of `SeqCst` fences only and treats `SeqCst` accesses as acquire
//! and release, so in its build [`barrier_after_clear`] is the fence that the argument replaces.

#[cfg(all(shuttle, not(loom)))]
pub mod counts;
#[cfg(loom)]
#[path = "loom.rs"]
mod imp;
#[cfg(all(shuttle, not(loom)))]
#[path = "shuttle.rs"]
mod imp;
#[cfg(not(any(loom, shuttle)))]
#[path = "real.rs"]
mod imp;
#[cfg(loom)]
pub mod sabotage;

pub(crate) use imp::{AtomicU32, AtomicU64, AtomicUsize, Mutex, Sleeper, Wake};
use std::sync::atomic::AtomicU64 as Unmodelled;
pub(crate) use std::sync::atomic::Ordering;

/// Between clearing a bit (`SeqCst`) and the look for waiters (`SeqCst`); see the module's argument
/// why nothing is needed outside loom.
#[inline(always)]
pub(crate) fn barrier_after_clear() {
    #[cfg(loom)]
    if !sabotage::leaves_out(sabotage::Part::BarrierAfterClear) {
        imp::fence(Ordering::SeqCst);
    }
}

/// Between the publication of a waiter and its second look for a tag.
pub(crate) fn barrier_after_publish() {
    #[cfg(loom)]
    if sabotage::leaves_out(sabotage::Part::BarrierAfterPublish) {
        return;
    }
    imp::fence(Ordering::SeqCst);
}

/// Between the count of a put and the look for threads on their way, whose looks the put may rely on;
/// and between the end of such a way and its look. Dekker's pattern once more: a put that sees a
/// thread on its way has its bit and its count seen by that thread.
pub(crate) fn barrier_after_count() {
    #[cfg(loom)]
    if sabotage::leaves_out(sabotage::Part::BarrierAfterCount) {
        return;
    }
    imp::fence(Ordering::SeqCst);
}

/// The other half of [`barrier_after_count`].
pub(crate) fn barrier_after_answer() {
    #[cfg(loom)]
    if sabotage::leaves_out(sabotage::Part::BarrierAfterAnswer) {
        return;
    }
    imp::fence(Ordering::SeqCst);
}

/// Between a change of depth or shares and the look for waiters that it may help.
pub(crate) fn barrier_after_change() {
    imp::fence(Ordering::SeqCst);
}

/// The put's side of the unequal pair in [`crate::tag_cache`]. With the heavy barrier on the other side
/// it is enough to keep the compiler from moving the store below the load. Models have no such pair:
/// there both sides are full barriers, which is what the pair amounts to.
#[inline(always)]
pub(crate) fn light_barrier() {
    #[cfg(loom)]
    if sabotage::leaves_out(sabotage::Part::LightBarrier) {
        return;
    }
    imp::light_barrier();
}

/// Makes every running thread of the process execute a full barrier.
pub(crate) fn heavy_barrier() {
    imp::heavy_barrier();
}

/// Whether there is a [`heavy_barrier`].
pub(crate) fn has_heavy_barrier() -> bool {
    imp::has_heavy_barrier()
}

/// A count for statistics: one writer at a time, any readers. Not part of the protocol, therefore
/// not modelled.
#[derive(Debug, Default)]
pub(crate) struct Tally(Unmodelled);

impl Tally {
    /// Adds to the count. No read-modify-write: there is one writer.
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// The count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
