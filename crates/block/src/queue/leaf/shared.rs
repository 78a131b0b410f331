//! The shared state of a leaf, its threads and the plugs of its users.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::watchdog_state::WatchdogState;
use crate::device::Reservations;
use crate::driver::{Driver, QueueContext};
use crate::experiments::OverlapOrder;
use crate::queue::gate::Gate;
use crate::queue::hardware::{HardwareQueue, HardwareSet};
use crate::queue::options::{Drive, QueueOptions};
use crate::request::{OverlapTracker, Request, dropped};

/// The shared state of a leaf, its threads and the plugs of its users.
pub(super) struct Shared<D> {
    pub(super) driver: Arc<D>,
    /// Which leaf it is, for its requests; never 0.
    pub(super) number: u64,
    pub(super) options: QueueOptions,
    pub(super) gate: Gate,
    /// Whether requests that overlap keep their order: not where only reads pass.
    pub(super) keeps_order: bool,
    pub(super) order: Mutex<OverlapTracker<Request>>,
    pub(super) hardware: HardwareSet,
    /// Whether answers were handed from ring to ring.
    pub(super) rings: AtomicBool,
    /// Whether requests in flight are to be stopped.
    pub(super) stopping: AtomicBool,
    /// Threads of the hardware queues that have not ended.
    pub(super) threads: AtomicUsize,
    pub(super) watchdog: Arc<WatchdogState>,
    pub(super) reservations: Reservations,
    pub(super) this: Weak<Self>,
}

impl<D: Driver> Shared<D> {
    /// The shared state of a leaf over `driver`.
    ///
    /// # Panics
    /// When the options ask for a depth of zero.
    pub(super) fn new(driver: D, options: QueueOptions) -> Arc<Self> {
        let keeps_order = options.order == OverlapOrder::Kept
            && options.drive != Drive::Inline
            && !driver.is_read_only();
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            driver: Arc::new(driver),
            number: dropped::number(),
            gate: Gate::default(),
            keeps_order,
            order: Mutex::default(),
            hardware: HardwareSet::new(&options),
            rings: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            watchdog: Arc::default(),
            reservations: Reservations::default(),
            this: Weak::clone(this),
            options,
        })
    }

    /// What tells this leaf from others.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// What the driver queue of `hardware` is opened for.
    pub(super) fn context(&self, hardware: &HardwareQueue) -> QueueContext {
        QueueContext { index: hardware.index, depth: hardware.tags.depth() }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

impl<D> Drop for Shared<D> {
    fn drop(&mut self) {
        dropped::forget(self.number);
        // It ends with the leaf.
        self.hardware.watchdog_wait.call();
    }
}
