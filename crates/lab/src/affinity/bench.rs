//! One row: its devices, and an application on each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use undercroft_block::experiments::{
    CompletionPlace, OverlapOrder, Placement as BlockPlacement, QueuePlace, Redirect, RqAffinity,
};
use undercroft_block::{
    BlockDevice, CpuSet, Drive, Leaf, Limits, NullOptions, QueueOptions, Statistics,
};

use super::application::{Application, pin};
use super::load::Load;
use super::outcome::{Cpus, Mechanism, Placement};
#[cfg(feature = "network")]
use super::served;
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::latency::{Latency, LatencyRecorder};
use crate::measure::rate::{Window, total};

/// Requests merge up to this many blocks; the disks of the source saw two reads in one request.
const BLOCKS_IN_REQUEST: u64 = 2;

/// One row on all devices.
pub(super) struct Bench<'a> {
    pub(super) load: Load,
    pub(super) mechanism: Mechanism,
    pub(super) placement: Placement,
    /// The CPUs that may be used.
    pub(super) cpus: &'a [u32],
    pub(super) duration: Duration,
}

/// What happened in one run.
pub(super) struct Measured {
    pub(super) window: Window,
    /// Latencies of each device.
    pub(super) latencies: Vec<Latency>,
    /// Counts of each device, over the whole run.
    pub(super) statistics: Vec<Statistics>,
}

impl Bench<'_> {
    /// Runs the row once.
    ///
    /// # Errors
    /// As the experiment.
    pub(super) fn run(&self) -> Result<Measured, LabError> {
        let devices: Vec<_> =
            (0..self.load.devices).map(|index| self.open(index)).collect::<Result<_, _>>()?;
        let counts: Vec<CachePadded<AtomicU64>> =
            devices.iter().map(|_| CachePadded::default()).collect();
        let (stop, gate) = (AtomicBool::new(false), Gate::default());
        let (window, latencies) = thread::scope(|scope| {
            let (devices, counts, stop) = (&devices, &counts, &stop);
            let life = |index: usize| self.live(index, &devices[index], &counts[index], stop);
            let threads = muster(scope, &gate, devices.len(), life)?;
            gate.open();
            let window = Window::measure(self.duration, || total(counts));
            stop.store(true, Ordering::Relaxed);
            let latencies = dismiss(threads).into_iter().collect::<Result<Vec<_>, LabError>>()?;
            Ok::<_, LabError>((window, latencies))
        })?;
        let statistics: Vec<Statistics> =
            devices.iter().map(|device| device.statistics()).collect();
        check(&counts, &statistics)?;
        let latencies = latencies.iter().map(LatencyRecorder::latency).collect();
        Ok(Measured { window, latencies, statistics })
    }

    fn open(&self, index: usize) -> Result<Arc<dyn BlockDevice>, LabError> {
        let roles = Cpus::of_device(self.cpus, self.placement, index);
        let null = NullOptions {
            service_time: self.load.service_time,
            completion_cpus: CpuSet::only(roles.interrupt),
            limits: Limits {
                max_request_bytes: self.load.block_bytes * BLOCKS_IN_REQUEST,
                ..Limits::default()
            },
            ..NullOptions::default()
        };
        let queue = QueueOptions {
            drive: Drive::Threads(1),
            hardware_queues: self.cpus.len(),
            thread_cpus: self.cpus.iter().map(|&cpu| CpuSet::only(cpu)).collect(),
            queue_bytes: self.load.block_bytes * self.load.outstanding as u64,
            order: OverlapOrder::LeftToSubmitters,
            ..QueueOptions::default()
        };
        let device: Arc<dyn BlockDevice> = Arc::new(Leaf::null(null, queue)?);
        device.set_placement(&self.block_placement(roles));
        Ok(device)
    }

    fn block_placement(&self, roles: Cpus) -> BlockPlacement {
        let redirect = match self.mechanism {
            Mechanism::Threads => Redirect::Threads,
            Mechanism::RingMessages => Redirect::RingMessage,
        };
        let only = |cpu| CpuSet::only(cpu);
        let completion = match self.placement {
            Placement::Pinned { .. } => roles
                .completion
                .map_or(CompletionPlace::Reaper, |cpu| CompletionPlace::Cpus(only(cpu))),
            Placement::Free { rq_affinity: 0 } => CompletionPlace::Affinity(RqAffinity::Off),
            Placement::Free { rq_affinity: 1 } => CompletionPlace::Affinity(RqAffinity::Group),
            Placement::Free { .. } => CompletionPlace::Affinity(RqAffinity::Cpu),
        };
        let queue = roles.queue.map_or(QueuePlace::Submitter, |cpu| QueuePlace::Cpus(only(cpu)));
        BlockPlacement { queue, completion, redirect }
    }

    /// The life of an application.
    fn live(
        &self,
        index: usize,
        device: &Arc<dyn BlockDevice>,
        count: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<LatencyRecorder, LabError> {
        let cpu = Cpus::of_device(self.cpus, self.placement, index).application;
        if self.load.is_served {
            #[cfg(feature = "network")]
            return served::live(device, cpu, self.load, count, stop);
            #[cfg(not(feature = "network"))]
            return Err(LabError::Served(NO_NETWORK.into()));
        }
        pin(cpu)?;
        Application::new(device, self.load).live(count, stop)
    }
}

#[cfg(not(feature = "network"))]
const NO_NETWORK: &str =
    "this program was built without network disks; build it with the feature `network`";

/// Every I/O is counted once where it was queued, and every request where it was completed.
fn check(counts: &[CachePadded<AtomicU64>], statistics: &[Statistics]) -> Result<(), LabError> {
    for (count, counted) in counts.iter().zip(statistics) {
        let submitted = count.load(Ordering::Relaxed);
        let queued = counted.queued_local + counted.queued_remote;
        let completed = counted.completed_local + counted.completed_remote;
        if counted.bios != submitted || queued != submitted || completed != counted.requests {
            let counted = *counted;
            return Err(LabError::Placement { submitted, counted: Box::new(counted) });
        }
    }
    Ok(())
}
