//! The hardware queues of a leaf: those that its threads drive, and those that were claimed; the
//! CPUs that each serves, and counters over all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use undercroft_tags::TagSet;

use super::deadlines::Deadlines;
use super::map::QueueMap;
use super::queue::HardwareQueue;
use super::watchdog_wait::WatchdogWait;
use crate::affinity::{CpuSet, Topology, current_cpu};
use crate::experiments::Placement;
use crate::queue::options::QueueOptions;
use crate::request::Request;
use crate::statistics::{
    Counters, QueueLatencies, QueueLatencyCells, QueueName, QueueReport, Statistics, Writers,
};

/// Where what ended is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// The thread that drives the hardware queue.
    Driver,
    /// The submitter, in whose thread the driver did the request.
    Submitter,
    /// A thread of the driver.
    Elsewhere,
}

/// All hardware queues of one leaf.
pub(crate) struct HardwareSet {
    /// Those for submitters without a claim.
    pub(super) own: Vec<Arc<HardwareQueue>>,
    claimed: RwLock<Vec<Arc<HardwareQueue>>>,
    /// Given back while the driver had requests over their time limit: they come back there.
    lingering: RwLock<Vec<Arc<HardwareQueue>>>,
    /// Index of the next one.
    next_index: AtomicUsize,
    map: QueueMap,
    /// CPUs that the threads of each are bound to.
    pub(super) thread_cpus: Vec<CpuSet>,
    /// Where experiments want requests.
    pub(super) placement: RwLock<Placement>,
    /// Whether `placement` asks for anything, to be known without its lock.
    pub(super) placed: AtomicBool,
    /// Where time limits are looked after.
    pub(crate) watchdog_wait: Arc<WatchdogWait>,
    /// Sums of claims that were given back.
    retired: Mutex<Retired>,
    /// Counts of requests that were answered outside the threads that drive the hardware queues.
    elsewhere: (Counters, QueueLatencyCells),
}

#[derive(Default)]
struct Retired {
    counts: Statistics,
    latencies: QueueLatencies,
    entered: u64,
    answered: u64,
}

impl HardwareSet {
    /// The queues that `options` ask for.
    ///
    /// # Panics
    /// When they ask for a depth of zero.
    pub(crate) fn new(options: &QueueOptions) -> Self {
        let count = options.hardware_queues.max(1);
        let watchdog_wait = Arc::<WatchdogWait>::default();
        let own = |index| hardware(index, options, &watchdog_wait);
        Self {
            own: (0..count).map(own).collect(),
            claimed: RwLock::default(),
            lingering: RwLock::default(),
            next_index: AtomicUsize::new(count),
            map: QueueMap::new(Topology::of_machine(), count),
            thread_cpus: options.thread_cpus.iter().take(count).cloned().collect(),
            placement: RwLock::default(),
            placed: AtomicBool::new(false),
            watchdog_wait,
            retired: Mutex::default(),
            elsewhere: Default::default(),
        }
    }

    /// Those for submitters without a claim.
    pub(crate) fn own(&self) -> &[Arc<HardwareQueue>] {
        &self.own
    }

    /// One more, for a claim; known to all when it is given to [`add`](Self::add).
    pub(crate) fn for_claim(&self, options: &QueueOptions) -> Arc<HardwareQueue> {
        let index = self.next_index.fetch_add(1, Ordering::Relaxed);
        hardware(index, options, &self.watchdog_wait)
    }

    /// Adds the queue of a claim.
    pub(crate) fn add(&self, hardware: &Arc<HardwareQueue>) {
        self.claimed.write().push(Arc::clone(hardware));
    }

    /// Folds the counts of a claim that is given back into the sums.
    pub(crate) fn retire(&self, hardware: &Arc<HardwareQueue>) {
        let mut claimed = self.claimed.write();
        let mut retired = self.retired.lock();
        let mut lingering = self.lingering.write();
        lingering.retain(|other| other.timed_out() > 0);
        if hardware.timed_out() > 0 {
            lingering.push(Arc::clone(hardware));
        }
        claimed.retain(|other| !Arc::ptr_eq(other, hardware));
        retired.counts = retired.counts + hardware.counters.snapshot();
        let latencies = std::mem::take(&mut retired.latencies);
        retired.latencies = latencies + hardware.latencies.snapshot();
        retired.entered += hardware.activity.entered();
        retired.answered += hardware.activity.answered();
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Arc<HardwareQueue>> {
        self.own.iter().chain(self.claimed.read().iter()).cloned().collect()
    }

    /// Whether the driver has requests over their time limit.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.own.iter().any(|one| one.timed_out() > 0)
            || self.claimed.read().iter().any(|one| one.timed_out() > 0)
            || self.lingering.read().iter().any(|one| one.timed_out() > 0)
    }

    /// Whether any is claimed.
    pub(crate) fn has_claims(&self) -> bool {
        !self.claimed.read().is_empty()
    }

    /// The one with this index. A claim is there until all its requests are answered and, where
    /// some had their time, let go: an index that is not known is none that a driver was given.
    pub(crate) fn at(&self, index: usize) -> Arc<HardwareQueue> {
        let find = |queues: &RwLock<Vec<Arc<HardwareQueue>>>| {
            queues.read().iter().find(|one| one.index == index).cloned()
        };
        let known = self.own.get(index).cloned();
        known
            .or_else(|| find(&self.claimed))
            .or_else(|| find(&self.lingering))
            .unwrap_or_else(|| Arc::clone(&self.own[0]))
    }

    /// The one that `request` was submitted to.
    pub(crate) fn of(&self, request: &Request) -> Arc<HardwareQueue> {
        self.at(request.inner.hardware as usize)
    }

    /// The one for what this thread submits without a claim.
    pub(crate) fn here(&self) -> &Arc<HardwareQueue> {
        if let [only] = &self.own[..] {
            return only;
        }
        let cpu = current_cpu();
        &self.own[self.placed(cpu).unwrap_or_else(|| self.map.queue_of(cpu))]
    }

    /// Whether nothing was inside at some moment during the call.
    pub(crate) fn is_idle(&self) -> bool {
        // Neither sum ever falls for good, and an answered request had entered. If the count of
        // answers, read first, equals the count of entries, read afterwards, no request was inside
        // in between.
        let claimed = self.claimed.read();
        let queues = || self.own.iter().chain(claimed.iter());
        let retired = self.retired.lock();
        let answered: u64 =
            retired.answered + queues().map(|queue| queue.activity.answered()).sum::<u64>();
        let entered = retired.entered + queues().map(|queue| queue.activity.entered()).sum::<u64>();
        answered == entered
    }

    /// The counters for what `via` hands in, and the threads that may write them.
    pub(crate) fn cells<'a>(
        &'a self,
        hardware: &'a HardwareQueue,
        via: Via,
    ) -> (&'a Counters, &'a QueueLatencyCells, Writers) {
        // Those of a claimed queue belong to the thread that claimed it.
        let claimed = hardware.index >= self.own.len();
        match via {
            Via::Driver if claimed => (&hardware.counters, &hardware.latencies, Writers::One),
            Via::Elsewhere => (&self.elsewhere.0, &self.elsewhere.1, Writers::Many),
            Via::Driver | Via::Submitter => {
                (&hardware.counters, &hardware.latencies, Writers::Many)
            }
        }
    }

    /// What passed through each so far.
    pub(crate) fn reports(&self) -> Vec<QueueReport> {
        // Locked for all of it, so that no claim is given back and counted twice.
        let claimed = self.claimed.read();
        let own = self.own.iter().map(|one| (QueueName::Own(one.index), one));
        let queues = own.chain(claimed.iter().map(|one| (QueueName::Claimed(one.index), one)));
        let queues = queues.map(|(name, one)| (name, one.counters.snapshot()));
        let others = [
            (QueueName::GivenBack, self.retired.lock().counts),
            (QueueName::DriverThreads, self.elsewhere.0.snapshot()),
        ];
        let reports = queues.chain(others);
        reports.map(|(name, statistics)| QueueReport { name, statistics }).collect()
    }

    /// How long it took.
    pub(crate) fn latencies(&self) -> QueueLatencies {
        let queues = self.all();
        let queues = queues.iter().map(|one| one.latencies.snapshot());
        let retired = self.retired.lock().latencies.clone();
        queues.fold(self.elsewhere.1.snapshot() + retired, |sum, one| sum + one)
    }
}

fn hardware(
    index: usize,
    options: &QueueOptions,
    watchdog_wait: &Arc<WatchdogWait>,
) -> Arc<HardwareQueue> {
    let tags = TagSet::new(options.depth).expect("a queue has a depth of at least one");
    let deadlines = options.time_limit.map(|limit| Deadlines::new(limit, watchdog_wait));
    Arc::new(HardwareQueue::new(index, tags, options.queue_bytes, deadlines))
}
