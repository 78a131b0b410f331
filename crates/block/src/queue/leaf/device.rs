//! A device that does I/O itself: a queue over a driver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

use super::completer::completer;
use super::shared::Shared;
use super::worker;
use crate::device::{BlockDevice, Layer, RequestQueue, claim};
use crate::driver::{Driver, OpenError};
use crate::queue::options::{Drive, QueueOptions};
use crate::request::dropped;
use crate::threads::role::may_wait;
use crate::threads::{Alarm, WaitLimit, timer};
use crate::units::{Limits, Sector};

/// A device over one driver: what takes requests and answers them.
///
/// Dropping it answers all bios submitted and stops its threads; it does not flush. With a [time
/// limit](QueueOptions::time_limit) that takes a bounded time, whatever the driver does: when all
/// is answered it waits for the threads once more as long as the limit, and leaves those behind
/// that are stuck in the driver then. They end, and with the last one the driver is dropped, when
/// the driver lets them go. Dropped in a completion callback or by a thread of a queue, it waits
/// for nothing: its threads answer the rest and end by themselves.
pub struct Leaf<D: Driver> {
    shared: Arc<Shared<D>>,
    /// The same, as the layers above know it.
    queue: Arc<dyn RequestQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl<D: Driver> Leaf<D> {
    /// A device over `driver`.
    ///
    /// # Errors
    /// When a thread or a driver queue cannot be started.
    ///
    /// # Panics
    /// When the options ask for a depth of zero.
    pub fn start(driver: D, options: QueueOptions) -> Result<Self, OpenError> {
        let shared = Shared::new(driver, options);
        dropped::register(shared.number, Weak::clone(&shared.this) as _);
        shared.driver.attach(completer(&shared.this));
        let queue = Arc::clone(&shared) as _;
        // Made before its threads, so that one that cannot start stops the others.
        let mut leaf = Self { shared, queue, threads: Vec::new() };
        if leaf.shared.options.time_limit.is_some() {
            let name = leaf.name().to_owned();
            let no_thread = |source| OpenError::Thread { name, source };
            leaf.shared.start_watchdog().map_err(no_thread)?;
        }
        if let Drive::Threads(threads) = leaf.shared.options.drive {
            for hardware in leaf.shared.hardware.own() {
                for _ in 0..threads.max(1) {
                    leaf.threads.push(worker::start(&leaf.shared, hardware)?);
                }
            }
        }
        Ok(leaf)
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &D {
        &self.shared.driver
    }
}

impl<D: Driver> Leaf<D> {
    /// Waits until everything is answered and the threads, whose mailboxes are closed, have ended.
    /// Returns false when they have not although all was answered a time limit ago.
    fn threads_end(&self) -> bool {
        let shared = &self.shared;
        let mut until = None;
        shared.gate.wait_until(|| {
            if shared.threads.load(Ordering::Acquire) == 0 {
                return Some(true);
            }
            if shared.hardware.own().iter().any(|hardware| hardware.activity.is_inside()) {
                return None;
            }
            // One may wait for what the driver dropped, or keeps beyond its time.
            shared.hardware.own().iter().for_each(|hardware| hardware.mail.wake());
            let limit = shared.options.time_limit?;
            let until = *until.get_or_insert_with(|| {
                let until = Instant::now().checked_add(limit);
                if let Some(until) = until {
                    let leaf = Weak::clone(&shared.this);
                    timer::at(until, move || {
                        if let Some(leaf) = leaf.upgrade() {
                            leaf.gate.changed();
                            dropped::leave(leaf);
                        }
                    });
                }
                until
            });
            until.is_some_and(|until| until <= Instant::now()).then_some(false)
        })
    }
}

impl<D: Driver> BlockDevice for Leaf<D> {
    fn name(&self) -> &str {
        self.shared.driver.name()
    }

    fn capacity(&self) -> Sector {
        self.shared.driver.capacity()
    }

    fn limits(&self) -> Limits {
        self.shared.driver.limits()
    }

    fn is_read_only(&self) -> bool {
        self.shared.driver.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Leaf(&self.queue)
    }
}

impl<D: Driver> Drop for Leaf<D> {
    fn drop(&mut self) {
        if let Some(claimed) = claim::find(self.shared.address()) {
            // No other thread can answer what this one has in flight.
            while claimed.is_busy() {
                claimed.step(&Alarm::current(), WaitLimit::Unlimited);
            }
        }
        for hardware in self.shared.hardware.own() {
            hardware.mail.close();
        }
        // A thread that answers bios of others may have to answer what would be waited for.
        if !may_wait() {
            return;
        }
        if self.threads_end() {
            for thread in std::mem::take(&mut self.threads) {
                // They catch the panics of callbacks, so this is only an error of our own.
                let joined = thread.join();
                debug_assert!(joined.is_ok(), "a thread of {} panicked", self.name());
            }
        }
        if !self.shared.hardware.has_claims() {
            self.shared.stop_watchdog();
        }
    }
}
