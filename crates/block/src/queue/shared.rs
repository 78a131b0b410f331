//! What a leaf, its threads and the plugs of its users share: requests come in, and are sent to a
//! hardware queue or done at once.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::attendant::Attendant;
use super::claim::{self, Claim, ClaimedQueue};
use super::completer::Completer;
use super::drive::Driving;
use super::gate::Gate;
use super::hardware::HardwareQueue;
use super::hardware_set::{HardwareSet, Via};
use super::options::{Drive, OverlapOrder, QueueOptions, Staging};
use super::order::OverlapTracker;
use super::staging::{Staged, StagedRequests};
use super::{RequestList, RequestQueue, Writers, home, worker};
use crate::affinity::Placement;
use crate::device::Limits;
use crate::driver::{Completions, Driver, QueueContext};
use crate::drivers::{Bell, OpenError};
use crate::error::Reason;
use crate::request::Request;
use crate::statistics::{QueueLatencies, QueueReport, Statistics};
use crate::{callback, timer};

/// What a leaf, its threads and the plugs of its users share.
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
    staging: Option<StagedRequests>,
    /// Submitted by threads that must not wait while the leaf was frozen.
    pub(super) parked: Mutex<RequestList>,
    /// Whether requests in flight are to be stopped.
    stopping: AtomicBool,
    /// Threads of the hardware queues that have not ended.
    pub(super) threads: AtomicUsize,
    pub(super) attendant: Arc<Attendant>,
    pub(super) this: Weak<Self>,
}

/// Whether this thread may wait for room in a queue: not if it may have to make the room itself.
pub(super) fn may_wait() -> bool {
    !worker::is_current() && !callback::is_running()
}

impl<D: Driver> RequestQueue for Shared<D> {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn limits(&self) -> Limits {
        self.driver.limits()
    }

    fn submit(&self, requests: &mut RequestList) {
        let Some(staging) = &self.staging else { return self.dispatch(requests) };
        let urgent = requests.iter().any(Request::is_immediate);
        match staging.add(requests, urgent) {
            Staged::Waiting => {}
            Staged::Full(mut requests) => self.dispatch(&mut requests),
            Staged::Plugged(time) => {
                let leaf = Weak::clone(&self.this);
                timer::at(time, move || {
                    if let Some(leaf) = leaf.upgrade() {
                        leaf.unplug();
                    }
                });
            }
        }
    }

    fn statistics(&self) -> Statistics {
        let locks = self.staging.as_ref().map_or(0, StagedRequests::locks);
        let staging = Statistics { staging_locks: locks, ..Statistics::default() };
        let queues = self.hardware.reports().into_iter();
        queues.map(|queue| queue.statistics).sum::<Statistics>() + staging
    }

    fn hardware_queues(&self) -> Vec<QueueReport> {
        self.hardware.reports()
    }

    fn latencies(&self) -> QueueLatencies {
        self.hardware.latencies()
    }

    fn drain(&self) {
        self.unplug();
        self.wait_idle();
    }

    fn close(&self) {
        self.gate.close();
        self.stopping.store(true, Ordering::SeqCst);
        self.refuse(&mut std::mem::take(&mut *self.parked.lock()));
        self.unplug();
        for hardware in self.hardware.all() {
            hardware.mail.wake();
        }
        self.drain();
    }

    fn unplug(&self) {
        if let Some(mut requests) = self.staging.as_ref().and_then(StagedRequests::unplug) {
            self.dispatch(&mut requests);
        }
    }

    fn set_placement(&self, placement: &Placement) {
        self.hardware.set_placement(placement);
    }

    fn claim(&self) -> Result<Claim, OpenError> {
        let Some(this) = self.this.upgrade() else { return Ok(Claim::new()) };
        if claim::find(self.address()).is_some() {
            return Ok(Claim::new());
        }
        if self.options.time_limit.is_some() {
            let no_thread = |source| OpenError::Thread { name: self.name().to_owned(), source };
            self.start_attendant().map_err(no_thread)?;
        }
        let hardware = self.hardware.for_claim(&self.options);
        let queue = self.driver.open_queue(&self.context(&hardware))?;
        self.hardware.add(&hardware);
        Ok(Claim::of(Rc::new(ClaimedQueue::new(this, hardware, queue))))
    }
}

impl<D: Driver> Shared<D> {
    /// What a leaf over `driver` shares. The driver knows where to hand in what ends.
    ///
    /// # Panics
    /// When the options ask for a depth of zero, or one above their greatest depth.
    pub(super) fn new(driver: D, options: QueueOptions) -> Arc<Self> {
        let staging = match options.staging {
            Staging::None => None,
            Staging::Plugged { requests, delay, unplug } => {
                Some(StagedRequests::new(requests, delay, unplug))
            }
        };
        let keeps_order = options.order == OverlapOrder::Kept
            && options.drive != Drive::Inline
            && !driver.is_read_only();
        let shared = Arc::new_cyclic(|this: &Weak<Self>| Self {
            driver: Arc::new(driver),
            number: home::number(),
            gate: Gate::default(),
            keeps_order,
            order: Mutex::default(),
            hardware: HardwareSet::new(&options),
            rings: AtomicBool::new(false),
            staging,
            parked: Mutex::default(),
            stopping: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            attendant: Arc::default(),
            this: Weak::clone(this),
            options,
        });
        home::register(shared.number, Weak::clone(&shared.this) as _);
        shared.driver.attach(Completer::of(&shared.this));
        shared
    }

    /// What tells this leaf from others.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// What the driver queue of `hardware` is opened for.
    pub(super) fn context(&self, hardware: &HardwareQueue) -> QueueContext {
        QueueContext { index: hardware.index, depth: hardware.tags.max_depth() }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Sends `requests` to the hardware queue that this thread has claimed, or to that of its CPU.
    pub(super) fn dispatch(&self, requests: &mut RequestList) {
        if let Some(claimed) = claim::find(self.address()) {
            return claimed.submit(requests);
        }
        let hardware = self.hardware.here();
        if !self.prepare(requests, hardware, Writers::Many) {
            return;
        }
        // Where there is a time limit, no submitter gets stuck in the driver who need not.
        let may_execute =
            || hardware.promises.is_none() && requests.iter().all(Request::is_immediate);
        if self.options.drive == Drive::Inline || may_execute() {
            self.execute(requests, hardware);
        }
        if !requests.is_empty() {
            let waits = || hardware.counters.waits.add(1, Writers::Many);
            hardware.mail.push(requests, may_wait(), waits);
        }
    }

    /// Does what the driver can do in this thread; leaves the rest in the list.
    fn execute(&self, requests: &mut RequestList, hardware: &HardwareQueue) {
        let bios = requests.iter().map(|request| request.bio_count() as u64).sum();
        hardware.counters.queued_local.add(bios, Writers::Many);
        let mut completions = Completions::default();
        let mut count = requests.len();
        while count > 0
            && let Some(mut request) = requests.pop()
        {
            if let Some(promises) = &hardware.promises {
                promises.start(std::iter::once(&request));
            }
            match self.driver.execute(&mut request) {
                Some(result) => completions.push(request, result),
                None => {
                    if let Some(promises) = &hardware.promises {
                        promises.wait_again(&request);
                    }
                    requests.push(request);
                }
            }
            count -= 1;
        }
        self.finish(hardware, &mut completions, Via::Submitter, Bell::wake);
    }

    /// Stops what is in flight, once, and ends everything that was not started, for a leaf that
    /// closes; called by the thread that drives the queue.
    pub(super) fn stop(
        &self,
        driving: &mut Driving<D>,
        requests: &mut RequestList,
        stopped: &mut bool,
    ) {
        if !std::mem::replace(stopped, true) {
            driving.stop_all();
        }
        let mut waiting = driving.take_waiting();
        waiting.append(requests);
        for request in waiting {
            driving.completions.push(request, Err(Reason::Closed.into()));
        }
    }

    /// Whether the thread of `hardware`, which was closed, has nothing to wait for: what ends in
    /// threads of the driver has to find the leaf, and what other rings hand over has to be done.
    pub(super) fn may_end(&self, hardware: &HardwareQueue) -> bool {
        let idle = || !self.rings.load(Ordering::Relaxed) || self.is_idle();
        hardware.has_answers() || (!hardware.activity.is_inside() && idle())
    }
}

impl<D> Drop for Shared<D> {
    fn drop(&mut self) {
        home::forget(self.number);
        // It ends with the leaf.
        self.hardware.lookout.call();
    }
}
