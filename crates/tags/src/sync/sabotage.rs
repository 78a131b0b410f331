//! Parts of the protocol that a test of the models leaves out, to see that the models notice.
//! Exists in the loom build only.

use std::sync::atomic::{AtomicU32, Ordering};

static LEFT_OUT: AtomicU32 = AtomicU32::new(0);

/// The parts that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Part {
    /// The barrier between clearing a bit and looking for waiters.
    BarrierAfterClear = 1,
    /// The barrier between the publication of a waiter and its second look.
    BarrierAfterPublish = 2,
    /// The second look for a tag.
    SecondLook = 4,
    /// Passing on the wake-up of a waiter that gave up.
    PassingOn = 8,
    /// The carry of completions below a batch.
    Carry = 16,
    /// The barrier between filling a tag cache and the second look at the gate.
    LightBarrier = 32,
    /// Closing the gate before a search fails.
    Closing = 64,
    /// The barrier between the count of a put and the look for threads on their way.
    BarrierAfterCount = 128,
    /// The barrier between the end of a thread's way and its look.
    BarrierAfterAnswer = 256,
    /// The look for others at the end of a wait.
    LookingAgain = 512,
}

/// Leaves `part` out from now on.
pub fn leave_out(part: Part) {
    LEFT_OUT.store(part as u32, Ordering::Relaxed);
}

pub(crate) fn leaves_out(part: Part) -> bool {
    LEFT_OUT.load(Ordering::Relaxed) & part as u32 != 0
}
