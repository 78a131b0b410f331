//! The applications of one row: each reads its device in sequence, with so many I/Os outstanding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionPlace, CompletionQueue, CpuSet, Drive, Finished, Leaf,
    Limits, NullOptions, OverlapOrder, Placement as BlockPlacement, Plug, QueueOptions, QueuePlace,
    Redirect, RqAffinity, SECTOR_SIZE, Sector, Statistics,
};

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

/// Binds this thread to a CPU, if there is one for it.
pub(super) fn pin(cpu: Option<u32>) -> Result<(), LabError> {
    let Some(cpu) = cpu else { return Ok(()) };
    CpuSet::only(cpu).pin_current_thread().map_err(|source| LabError::Pin { cpu, source })
}

/// One application and its outstanding I/Os.
pub(super) struct Application {
    plug: Plug,
    queue: CompletionQueue,
    load: Load,
    /// Block to read next.
    next: u64,
    /// Buffers of I/Os not outstanding, with their numbers.
    idle: Vec<(u64, Buffer)>,
    /// When each outstanding I/O began, by its number.
    begun: Vec<Instant>,
    done: u64,
    latencies: LatencyRecorder,
}

impl Application {
    pub(super) fn new(device: &Arc<dyn BlockDevice>, load: Load) -> Self {
        let buffer = |number| (number as u64, Buffer::zeroed(load.block_bytes as usize));
        Self {
            plug: Plug::new(device),
            queue: CompletionQueue::new(),
            load,
            next: 0,
            idle: (0..load.outstanding).map(buffer).collect(),
            begun: vec![Instant::now(); load.outstanding],
            done: 0,
            latencies: LatencyRecorder::default(),
        }
    }

    /// Reads until it is stopped, and counts what is done.
    pub(super) fn live(
        mut self,
        count: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<LatencyRecorder, LabError> {
        // Something is done however short the run, so that counters can be looked at.
        loop {
            self.fill();
            self.collect()?;
            count.store(self.done, Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        while self.idle.len() < self.load.outstanding {
            self.collect()?;
        }
        count.store(self.done, Ordering::Relaxed);
        Ok(self.latencies)
    }

    /// Reads on with every idle buffer.
    fn fill(&mut self) {
        let now = Instant::now();
        let blocks = self.load.range_bytes / self.load.block_bytes;
        let step = self.load.step_blocks;
        for (number, buffer) in self.idle.drain(..) {
            let sector = Sector(self.next % blocks * (self.load.block_bytes / SECTOR_SIZE));
            self.next += step;
            self.begun[number as usize] = now;
            self.plug.submit(Bio::read(sector, buffer).in_queue(&self.queue, number));
        }
        self.plug.flush();
    }

    /// Sleeps until something has ended, and takes all that has.
    fn collect(&mut self) -> Result<(), LabError> {
        let mut finished = Some(self.queue.wait());
        while let Some(Finished { cookie, completion }) = finished {
            completion.result?;
            self.latencies.record(self.begun[cookie as usize].elapsed());
            self.idle.extend(completion.buffer.map(|buffer| (cookie, buffer)));
            self.done += 1;
            finished = self.queue.poll();
        }
        Ok(())
    }
}

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
