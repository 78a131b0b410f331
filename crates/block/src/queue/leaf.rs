//! A device that does I/O itself: a queue over a driver.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use smallvec::SmallVec;
use undercroft_tags::{ConfigError, TagSet};

use super::claim::{self, Claim, ClaimedQueue, Patience};
use super::drive::Driving;
use super::gate::{Gate, Shut};
use super::hardware::HardwareQueue;
use super::map::QueueMap;
use super::options::{Drive, OverlapOrder, QueueOptions, Staging};
use super::order::OverlapTracker;
use super::staging::{Staged, StagedRequests};
use super::{RequestList, RequestQueue, Writers, worker};
use crate::affinity::{CpuSet, Placement, QueuePlace, Topology};
use crate::device::{BlockDevice, Layer, Limits};
use crate::driver::{Completions, Driver, QueueContext};
use crate::drivers::{Bell, OpenError};
use crate::error::Reason;
use crate::request::{Request, Terms};
use crate::sector::Sector;
use crate::sleep::Alarm;
use crate::statistics::{Counters, QueueLatencies, QueueLatencyCells, Statistics};
use crate::{callback, clock, timer};

/// A device over one driver: what takes requests and answers them.
///
/// Dropping it answers everything submitted and stops its threads; it does not flush.
pub struct Leaf<D: Driver> {
    shared: Arc<Shared<D>>,
    /// The same, as the layers above know it.
    queue: Arc<dyn RequestQueue>,
    threads: Vec<JoinHandle<()>>,
}

/// What a leaf, its threads and the plugs of its users share.
pub(super) struct Shared<D> {
    pub(super) driver: Arc<D>,
    pub(super) options: QueueOptions,
    pub(super) gate: Gate,
    pub(super) order: Mutex<OverlapTracker<Request>>,
    map: QueueMap,
    /// For submitters without a claim.
    queues: Vec<Arc<HardwareQueue>>,
    claimed: RwLock<Vec<Arc<HardwareQueue>>>,
    /// Index of the next hardware queue.
    next_index: AtomicUsize,
    placement: RwLock<Placement>,
    /// Whether `placement` asks for anything, to be known without its lock.
    placed: AtomicBool,
    /// Whether answers were handed from ring to ring.
    pub(super) rings: AtomicBool,
    /// The tags of all hardware queues, if they share them.
    shared_tags: Option<TagSet>,
    /// Sums of claims that were given back.
    retired: Mutex<Retired>,
    /// Of what was answered outside the threads that drive the hardware queues.
    elsewhere: (Counters, QueueLatencyCells),
    staging: Option<StagedRequests>,
    /// Submitted by threads that must not wait while the leaf was frozen.
    parked: Mutex<RequestList>,
    /// Whether requests in flight are to be stopped.
    stopping: AtomicBool,
    pub(super) this: Weak<Self>,
}

#[derive(Default)]
struct Retired {
    counts: Statistics,
    latencies: QueueLatencies,
    entered: u64,
    answered: u64,
}

/// Who hands in what ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// The thread that drives the hardware queue.
    Driver,
    /// The submitter, in whose thread the driver did the request.
    Submitter,
    /// A thread of the driver.
    Elsewhere,
}

/// Through which a driver hands in what ended from threads of its own, as a disk does by
/// interrupts, instead of by [`reap`](crate::DriverQueue::reap).
#[derive(Clone)]
pub struct Completer {
    complete: Arc<Complete>,
}

/// Answers what ended in the hardware queue with this index.
type Complete = dyn Fn(usize, &mut Completions) + Send + Sync;

impl Completer {
    /// Answers `completions` of the hardware queue with this
    /// [index](crate::QueueContext::index), in the calling thread.
    pub fn complete(&self, queue: usize, completions: &mut Completions) {
        (self.complete)(queue, completions);
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer").finish_non_exhaustive()
    }
}

impl<D: Driver> Leaf<D> {
    /// A device over `driver`.
    ///
    /// # Errors
    /// When a thread or a driver queue cannot be started.
    ///
    /// # Panics
    /// When the options ask for a depth of zero, or one above their greatest depth.
    pub fn start(driver: D, options: QueueOptions) -> Result<Self, OpenError> {
        let count = options.hardware_queues.max(1);
        let shared_tags = options.shared_tags.then(|| tags(&options, true));
        let staging = match options.staging {
            Staging::None => None,
            Staging::Plugged { requests, delay, unplug } => {
                Some(StagedRequests::new(requests, delay, unplug))
            }
        };
        let shared = Arc::new_cyclic(|this| Shared {
            driver: Arc::new(driver),
            gate: Gate::default(),
            map: QueueMap::new(Topology::of_machine(), count),
            order: Mutex::default(),
            queues: (0..count).map(|index| hardware(index, &options, &shared_tags)).collect(),
            claimed: RwLock::default(),
            next_index: AtomicUsize::new(count),
            placement: RwLock::default(),
            placed: AtomicBool::new(false),
            rings: AtomicBool::new(false),
            shared_tags,
            retired: Mutex::default(),
            elsewhere: Default::default(),
            staging,
            parked: Mutex::default(),
            stopping: AtomicBool::new(false),
            this: Weak::clone(this),
            options,
        });
        shared.driver.attach(shared.completer());
        let queue = Arc::clone(&shared) as _;
        // Made before its threads, so that one that cannot start stops the others.
        let mut leaf = Self { shared, queue, threads: Vec::new() };
        if let Drive::Threads(threads) = leaf.shared.options.drive {
            for hardware in &leaf.shared.queues {
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

    /// Waits until nothing is in flight, and holds submitters back until the guard is dropped.
    ///
    /// Must not be called in a completion callback.
    #[must_use = "dropping the guard lets submitters go on"]
    pub fn freeze(&self) -> Frozen<'_, D> {
        self.shared.gate.freeze();
        self.shared.unplug();
        self.shared.wait_idle();
        Frozen { leaf: self }
    }

    /// Changes the number of requests that may be in flight in each hardware queue, or in all if
    /// they share tags. Waits until nothing is in flight.
    ///
    /// # Errors
    /// When `depth` is zero, or above the [`max_depth`](QueueOptions::max_depth) of the options.
    pub fn set_depth(&self, depth: u32) -> Result<(), ConfigError> {
        let frozen = self.freeze();
        for hardware in self.shared.all_queues() {
            hardware.tags.resize(depth)?;
        }
        drop(frozen);
        Ok(())
    }
}

/// A leaf in which nothing is in flight. Dropping it lets submitters go on.
pub struct Frozen<'leaf, D: Driver> {
    leaf: &'leaf Leaf<D>,
}

impl<D: Driver> Drop for Frozen<'_, D> {
    fn drop(&mut self) {
        self.leaf.shared.unfreeze();
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
        self.shared.unplug();
        if let Some(claimed) = claim::find(self.shared.address()) {
            // Nobody but this thread can answer what it has in flight.
            while claimed.is_busy() {
                claimed.step(&Alarm::current(), Patience::Unlimited);
            }
        }
        for hardware in &self.shared.queues {
            hardware.close();
        }
        for thread in std::mem::take(&mut self.threads) {
            // The last handle may be dropped by a callback in such a thread; it ends by itself.
            if thread.thread().id() != std::thread::current().id() {
                // They catch the panics of callbacks, so this is only an error of our own.
                let joined = thread.join();
                debug_assert!(joined.is_ok(), "a thread of {} panicked", self.name());
            }
        }
    }
}

/// Tags as the options say; `fair` if hardware queues share them.
fn tags(options: &QueueOptions, fair: bool) -> TagSet {
    let builder = TagSet::builder(options.depth).max_depth(options.max_depth.max(options.depth));
    builder.fair_sharing(fair).build().expect("a queue has a depth of at least one")
}

fn hardware(index: usize, options: &QueueOptions, shared: &Option<TagSet>) -> Arc<HardwareQueue> {
    let tags = shared.clone().unwrap_or_else(|| tags(options, false));
    let has_time_limit = options.time_limit.is_some();
    Arc::new(HardwareQueue::new(index, tags, options.queue_bytes, has_time_limit))
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
        let queues: Statistics = self.all_queues().iter().map(|one| one.counters.snapshot()).sum();
        let locks = self.staging.as_ref().map_or(0, StagedRequests::locks);
        let staging = Statistics { staging_locks: locks, ..Statistics::default() };
        queues + self.elsewhere.0.snapshot() + self.retired.lock().counts + staging
    }

    fn latencies(&self) -> QueueLatencies {
        let queues = self.all_queues();
        let queues = queues.iter().map(|one| one.latencies.snapshot());
        let retired = self.retired.lock().latencies.clone();
        queues.fold(self.elsewhere.1.snapshot() + retired, |sum, one| sum + one)
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
        for hardware in self.all_queues() {
            hardware.wake();
        }
        self.drain();
    }

    fn unplug(&self) {
        if let Some(mut requests) = self.staging.as_ref().and_then(StagedRequests::unplug) {
            self.dispatch(&mut requests);
        }
    }

    fn set_placement(&self, placement: &Placement) {
        self.placement.write().clone_from(placement);
        self.placed.store(*placement != Placement::default(), Ordering::Release);
    }

    fn claim(&self) -> Result<Claim, OpenError> {
        let Some(this) = self.this.upgrade() else { return Ok(Claim::new()) };
        if claim::find(self.address()).is_some() {
            return Ok(Claim::new());
        }
        let index = self.next_index.fetch_add(1, Ordering::Relaxed);
        let hardware = hardware(index, &self.options, &self.shared_tags);
        let queue = self.driver.open_queue(&self.context(&hardware))?;
        self.claimed.write().push(Arc::clone(&hardware));
        Ok(Claim::of(Rc::new(ClaimedQueue::new(this, hardware, queue))))
    }
}

impl<D: Driver> Shared<D> {
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

    pub(super) fn keeps_order(&self) -> bool {
        self.options.order == OverlapOrder::Kept && self.options.drive != Drive::Inline
    }

    /// Sends `requests` to the hardware queue that this thread has claimed, or to that of its CPU.
    fn dispatch(&self, requests: &mut RequestList) {
        if let Some(claimed) = claim::find(self.address()) {
            return claimed.submit(requests);
        }
        let hardware = self.hardware_here();
        if !self.prepare(requests, hardware, Writers::Many) {
            return;
        }
        let here =
            self.options.drive == Drive::Inline || requests.iter().all(Request::is_immediate);
        if here {
            self.execute(requests, hardware);
        }
        if !requests.is_empty() {
            hardware.push(requests, may_wait());
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
            match self.driver.execute(&mut request) {
                Some(result) => completions.push(request, result),
                None => requests.push(request),
            }
            count -= 1;
        }
        self.finish(hardware, &mut completions, Via::Submitter, Bell::wake);
    }

    /// Lets `requests` in: answers those that the device cannot serve, waits while it is frozen,
    /// and keeps those back that have to wait for others. Returns whether any may start now.
    pub(super) fn prepare(
        &self,
        requests: &mut RequestList,
        hardware: &HardwareQueue,
        writers: Writers,
    ) -> bool {
        hardware.counters.arrived(requests, writers);
        self.refuse_what_cannot_be(requests);
        if requests.is_empty() || !self.enter(requests, hardware, writers) {
            return false;
        }
        let (now, cpu) = (clock::nanoseconds(), crate::affinity::current_cpu());
        for request in requests.iter_mut() {
            request.inner.submitted = now;
            request.inner.cpu = cpu;
            // Hardware queues are numbered from zero on, one for each claim ever made.
            request.inner.hardware = hardware.index as u32;
        }
        if self.keeps_order() {
            self.hold_back(requests, hardware);
        }
        !requests.is_empty()
    }

    /// Answers the bios that the device cannot serve.
    fn refuse_what_cannot_be(&self, requests: &mut RequestList) {
        let terms = Terms {
            limits: self.driver.limits(),
            capacity: self.driver.capacity(),
            read_only: self.driver.is_read_only(),
        };
        if requests.iter().all(|request| request.is_admissible(&terms)) {
            return;
        }
        let name = self.driver.name();
        for request in std::mem::take(requests).into_iter() {
            requests.extend(request.admit(name, &terms));
        }
    }

    /// Counts `requests` as inside, as soon as the gate is open. If they cannot wait for that, or
    /// it is shut for good, takes them from the list and returns false.
    fn enter(
        &self,
        requests: &mut RequestList,
        hardware: &HardwareQueue,
        writers: Writers,
    ) -> bool {
        let count = requests.len() as u64;
        while let Err(shut) = self.gate.enter(&hardware.activity, count, writers) {
            if shut == Shut::Closed {
                self.refuse(requests);
                return false;
            }
            if may_wait() {
                hardware.counters.waits.add(1, writers);
                let open = || (self.gate.shut() != Some(Shut::Frozen)).then_some(());
                self.gate.wait_until(open);
                continue;
            }
            let mut parked = self.parked.lock();
            // Whoever unfreezes takes what is parked afterwards, under the same lock.
            if self.gate.shut() == Some(Shut::Frozen) {
                parked.append(requests);
                return false;
            }
        }
        true
    }

    /// Answers requests of a closed device.
    fn refuse(&self, requests: &mut RequestList) {
        while let Some(request) = requests.pop() {
            request.fail(self.driver.name(), 0, &Reason::Closed);
        }
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

    /// Keeps those requests back that overlap with others.
    fn hold_back(&self, requests: &mut RequestList, hardware: &HardwareQueue) {
        let order = &mut *self.order.lock();
        let order = std::cell::RefCell::new(order);
        requests.keep(
            |request| order.borrow_mut().may_start(request),
            |request| {
                hardware.hold();
                order.borrow_mut().hold(request);
            },
        );
    }

    fn unfreeze(&self) {
        self.gate.unfreeze();
        let mut parked = std::mem::take(&mut *self.parked.lock());
        if !parked.is_empty() {
            self.dispatch(&mut parked);
        }
    }

    /// Sleeps until nothing is inside.
    fn wait_idle(&self) {
        self.gate.wait_until(|| self.is_idle().then_some(()));
    }

    /// Whether nothing was inside at some moment during the call.
    fn is_idle(&self) -> bool {
        // Neither sum ever falls for good, and what was answered had entered: if what was answered
        // first equals what has entered afterwards, nothing was inside in between.
        let claimed = self.claimed.read();
        let queues = || self.queues.iter().chain(claimed.iter());
        let retired = self.retired.lock();
        let answered: u64 = self.gate.answered_elsewhere()
            + retired.answered
            + queues().map(|queue| queue.activity.answered()).sum::<u64>();
        let entered = retired.entered + queues().map(|queue| queue.activity.entered()).sum::<u64>();
        answered == entered
    }

    /// The hardware queue for what this thread submits.
    fn hardware_here(&self) -> &Arc<HardwareQueue> {
        if let [only] = &self.queues[..] {
            return only;
        }
        let cpu = crate::affinity::current_cpu();
        let placed =
            self.placement().and_then(|placement| self.placed_queue(&placement.queue, cpu));
        &self.queues[placed.unwrap_or_else(|| self.map.queue_of(cpu))]
    }

    /// The hardware queue that `place` asks for.
    fn placed_queue(&self, place: &QueuePlace, submitter: u32) -> Option<usize> {
        let runs_in = |cpus: &CpuSet, place: &CpuSet| cpus.iter().all(|cpu| place.contains(cpu));
        let place = match place {
            QueuePlace::Anywhere => return None,
            QueuePlace::Submitter => &CpuSet::only(submitter),
            QueuePlace::Cpus(cpus) => cpus,
        };
        let threads = self.options.thread_cpus.iter().take(self.queues.len());
        let fitting = threads.enumerate().filter(|(_, cpus)| runs_in(cpus, place));
        let fitting: SmallVec<[usize; 8]> = fitting.map(|(index, _)| index).collect();
        let turn = (submitter as usize).checked_rem(fitting.len())?;
        Some(fitting[turn])
    }

    /// A hardware queue whose only thread runs on `cpu` and hears messages of other rings.
    pub(super) fn listening_on(&self, cpu: u32) -> Option<(&HardwareQueue, &Bell)> {
        let place = CpuSet::only(cpu);
        let threads = self.queues.iter().zip(&self.options.thread_cpus);
        threads.filter(|(_, cpus)| **cpus == place).find_map(|(one, _)| Some((&**one, one.bell()?)))
    }

    /// Whether the thread of `hardware`, which was closed, has nothing to wait for: what ends in
    /// threads of the driver has to find the leaf, and what other rings hand over has to be done.
    pub(super) fn may_end(&self, hardware: &HardwareQueue) -> bool {
        let idle = || !self.rings.load(Ordering::Relaxed) || self.is_idle();
        hardware.has_answers() || (hardware.tags.in_use() == 0 && idle())
    }

    /// What is asked for, if it is anything but the default.
    pub(super) fn placement(&self) -> Option<RwLockReadGuard<'_, Placement>> {
        self.placed.load(Ordering::Acquire).then(|| self.placement.read())
    }

    /// The hardware queue that `request` was submitted to; another one if its claim is gone.
    pub(super) fn hardware_of(&self, request: &Request) -> Arc<HardwareQueue> {
        self.hardware_at(request.inner.hardware as usize)
    }

    fn hardware_at(&self, index: usize) -> Arc<HardwareQueue> {
        let known = self.queues.get(index).cloned();
        known
            .or_else(|| self.claimed.read().iter().find(|one| one.index == index).cloned())
            .unwrap_or_else(|| Arc::clone(&self.queues[0]))
    }

    fn all_queues(&self) -> Vec<Arc<HardwareQueue>> {
        self.queues.iter().chain(self.claimed.read().iter()).cloned().collect()
    }

    /// The counters for what `via` hands in, and who may write them.
    pub(super) fn cells<'a>(
        &'a self,
        hardware: &'a HardwareQueue,
        via: Via,
    ) -> (&'a Counters, &'a QueueLatencyCells, Writers) {
        // Those of a claimed queue belong to the thread that claimed it.
        let claimed = hardware.index >= self.queues.len();
        match via {
            Via::Driver if claimed => (&hardware.counters, &hardware.latencies, Writers::One),
            Via::Elsewhere => (&self.elsewhere.0, &self.elsewhere.1, Writers::Many),
            Via::Driver | Via::Submitter => {
                (&hardware.counters, &hardware.latencies, Writers::Many)
            }
        }
    }

    /// Counts requests that a thread of `hardware` took, by where they were submitted.
    pub(super) fn count_queued(&self, hardware: &HardwareQueue, requests: &RequestList) {
        if requests.is_empty() {
            return;
        }
        let cpu = crate::affinity::current_cpu();
        let (mut local, mut remote) = (0, 0);
        for request in requests.iter() {
            let bios = request.bio_count() as u64;
            *(if request.inner.cpu == cpu { &mut local } else { &mut remote }) += bios;
        }
        for (counter, bios) in
            [(&hardware.counters.queued_local, local), (&hardware.counters.queued_remote, remote)]
        {
            if bios > 0 {
                counter.add(bios, Writers::Many);
            }
        }
    }

    /// Folds the counts of a claim that is given back into the sums of the leaf.
    pub(super) fn retire(&self, hardware: &Arc<HardwareQueue>) {
        let mut claimed = self.claimed.write();
        let mut retired = self.retired.lock();
        claimed.retain(|other| !Arc::ptr_eq(other, hardware));
        retired.counts = retired.counts + hardware.counters.snapshot();
        let latencies = std::mem::take(&mut retired.latencies);
        retired.latencies = latencies + hardware.latencies.snapshot();
        retired.entered += hardware.activity.entered();
        retired.answered += hardware.activity.answered();
    }

    fn completer(&self) -> Completer {
        let this = Weak::clone(&self.this);
        let complete = move |index: usize, completions: &mut Completions| {
            if let Some(leaf) = this.upgrade() {
                let hardware = leaf.hardware_at(index);
                leaf.finish(&hardware, completions, Via::Elsewhere, Bell::wake);
            }
        };
        Completer { complete: Arc::new(complete) }
    }
}
