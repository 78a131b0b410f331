//! The standard library's atomics, parking_lot's lock, and parking of threads.

use std::sync::atomic::{Ordering, compiler_fence};
use std::thread::{self, Thread};
use std::time::Instant;

pub(crate) use parking_lot::Mutex;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

/// A thread about to sleep. Wake-ups are remembered, and there may be spurious ones.
pub(crate) struct Sleeper(Thread);

impl Sleeper {
    /// The running thread.
    pub(crate) fn current() -> Self {
        Self(thread::current())
    }

    /// What wakes it.
    pub(crate) fn wake(&self) -> Wake {
        Wake(self.0.clone())
    }

    /// Sleeps until woken, or until the deadline if there is one.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) {
        match deadline {
            None => thread::park(),
            Some(deadline) => {
                thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
            }
        }
    }
}

/// Wakes one [`Sleeper`].
pub(crate) struct Wake(Thread);

impl Wake {
    /// Wakes it now, or makes its next sleep return at once.
    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

#[inline(always)]
pub(crate) fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

#[cfg(target_os = "linux")]
mod heavy {
    use std::sync::OnceLock;
    use std::sync::atomic::{Ordering, fence};

    use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

    /// Asks the kernel once per process; a sandbox may forbid the call.
    pub(crate) fn has_heavy_barrier() -> bool {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        *REGISTERED.get_or_init(|| {
            membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
                && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        })
    }

    pub(crate) fn heavy_barrier() {
        fence(Ordering::SeqCst);
        membarrier(MembarrierCommand::PrivateExpedited)
            .expect("the kernel has registered this process for the call");
        fence(Ordering::SeqCst);
    }
}

#[cfg(not(target_os = "linux"))]
mod heavy {
    /// There is none that costs the other side nothing.
    pub(crate) fn has_heavy_barrier() -> bool {
        false
    }

    pub(crate) fn heavy_barrier() {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

pub(crate) use heavy::{has_heavy_barrier, heavy_barrier};
