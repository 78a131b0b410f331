//! One run of one variant: workers, the set, the device, and a window in which things are counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Statistics, TagSet, User};

use super::device::{Device, Owner, Service};
use super::outcome::{PolicyName, Waiters};
use super::worker::{Job, TaskOwner, ThreadOwner, run_tasks, run_thread};
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::latency::LatencyRecorder;
use crate::measure::rate::WARM_UP;
use crate::measure::usage::Usage;

/// Most lanes of the device: as many interrupts as the largest desktops share among their CPUs.
const MAX_LANES: usize = 4;

/// Workers that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// Number of them.
    pub(super) workers: usize,
    /// Commands that each keeps outstanding.
    pub(super) outstanding: usize,
    /// Bytes of a command.
    pub(super) bytes: u64,
}

/// One variant of one case.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) policy: PolicyName,
    pub(super) depth: u32,
    pub(super) queues: usize,
    pub(super) fair: bool,
    pub(super) waiters: Waiters,
    pub(super) classes: Vec<Class>,
    pub(super) service: Service,
    pub(super) duration: Duration,
}

/// The counts up to some moment.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Completions by class.
    pub(super) ios: Vec<u64>,
    pub(super) gets: u64,
    pub(super) puts: u64,
    pub(super) sleeps: u64,
    pub(super) wakes: u64,
    pub(super) wakes_used: u64,
    pub(super) usage: Usage,
    at: Instant,
}

/// What happened in the window.
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    /// Counts of the window alone.
    pub(super) window: Counts,
    /// Latencies of the whole run, by class.
    pub(super) latencies: Vec<LatencyRecorder>,
}

/// Ends the workers when it is dropped, also by a panic: the scope waits for them, and would for ever.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Setup {
    /// Runs the variant once.
    ///
    /// # Errors
    /// A thread could not be started; or tags and completions do not add up at the end, which is a
    /// defect of the measured code.
    pub(super) fn run(&self) -> Result<Measured, LabError> {
        let set = self.tag_set();
        let users: Vec<User> = (0..self.queues).map(|_| set.user()).collect();
        match self.waiters {
            Waiters::Threads => {
                let jobs = self.jobs(|_| 1);
                let owners: Vec<_> = jobs.iter().map(|_| ThreadOwner::new()).collect();
                self.run_with(&set, &owners, &jobs, |job, device, stop| {
                    let mut caller = users[job.worker % users.len()].caller();
                    run_thread(&mut caller, &owners[job.owner], device, job, stop);
                })
            }
            Waiters::Tasks => {
                let jobs = self.jobs(|class| class.outstanding);
                let count = jobs.iter().map(|job| job.outstanding).sum();
                let owners: Vec<_> = (0..count).map(|_| TaskOwner::new()).collect();
                self.run_with(&set, &owners, &jobs, |job, device, stop| {
                    let user = &users[job.worker % users.len()];
                    let own = &owners[job.owner..job.owner + job.outstanding];
                    run_tasks(user, own, device, job, stop);
                })
            }
        }
    }

    fn tag_set(&self) -> TagSet {
        let builder = TagSet::builder(self.depth).fair_sharing(self.fair);
        let builder = match self.policy {
            PolicyName::Counters => builder.policy(WakePolicy::Counters),
            PolicyName::Cyclic8 => builder.policy(WakePolicy::CyclicBatches).wait_queues(8),
            PolicyName::Cyclic1 => builder.policy(WakePolicy::CyclicBatches).wait_queues(1),
            PolicyName::WakeOne => builder.policy(WakePolicy::WakeOne),
            PolicyName::WakeAll => builder.policy(WakePolicy::WakeAll),
        };
        builder.build().expect("cases have from one to some hundred tags")
    }

    /// What each worker does; `owners` says how many owners a worker of a class has.
    fn jobs(&self, owners: impl Fn(&Class) -> usize) -> Vec<Job> {
        let mut jobs = Vec::new();
        let mut owner = 0;
        for (index, class) in self.classes.iter().enumerate() {
            for _ in 0..class.workers {
                let Class { outstanding, bytes, .. } = *class;
                jobs.push(Job { worker: jobs.len(), owner, class: index, outstanding, bytes });
                owner += owners(class);
            }
        }
        jobs
    }

    /// Starts lanes and workers, counts in the window, stops, and checks the sums.
    fn run_with<O: Owner>(
        &self,
        set: &TagSet,
        owners: &[O],
        jobs: &[Job],
        life: impl Fn(Job, &Device<'_, O>, &AtomicBool) + Send + Sync,
    ) -> Result<Measured, LabError> {
        let lanes = if self.service.bytes_per_second.is_some() { 1 } else { lanes() };
        let device = Device::new(set, owners, self.service, lanes, self.classes.len());
        let (device, stop, life) = (&device, &AtomicBool::new(false), &life);
        let (lane_gate, worker_gate) = (&Gate::default(), &Gate::default());
        thread::scope(|scope| {
            let lanes = muster(scope, lane_gate, lanes, |index| device.serve(index))?;
            lane_gate.open();
            let begin = |index: usize| life(jobs[index], device, stop);
            let workers =
                muster(scope, worker_gate, jobs.len(), begin).inspect_err(|_| device.close())?;
            worker_gate.open();
            let stopped = Stop(stop);
            let window = self.window(set, device);
            drop(stopped);
            dismiss(workers);
            device.close();
            let mut latencies = vec![LatencyRecorder::default(); self.classes.len()];
            for lane in dismiss(lanes) {
                latencies.iter_mut().zip(&lane).for_each(|(sum, part)| sum.merge(part));
            }
            self.check(set, device)?;
            Ok(Measured { elapsed: window.0, window: window.1, latencies })
        })
    }

    /// Counts between the warm-up and the end of the run.
    fn window<O: Owner>(&self, set: &TagSet, device: &Device<'_, O>) -> (Duration, Counts) {
        thread::sleep(self.duration / WARM_UP);
        let begin = self.counts(set, device);
        thread::sleep(self.duration);
        let end = self.counts(set, device);
        let window = Counts {
            ios: end.ios.iter().zip(&begin.ios).map(|(end, begin)| end - begin).collect(),
            gets: end.gets - begin.gets,
            // What is in use is counted a moment after what was had: a window without progress may seem to go back.
            puts: end.puts.saturating_sub(begin.puts),
            sleeps: end.sleeps - begin.sleeps,
            wakes: end.wakes - begin.wakes,
            wakes_used: end.wakes_used - begin.wakes_used,
            usage: end.usage - begin.usage,
            at: end.at,
        };
        (end.at - begin.at, window)
    }

    fn counts<O: Owner>(&self, set: &TagSet, device: &Device<'_, O>) -> Counts {
        let tags = set.statistics();
        Counts {
            ios: (0..self.classes.len()).map(|class| device.completed(class)).collect(),
            gets: tags.gets,
            puts: tags.puts,
            sleeps: tags.sleeps,
            wakes: tags.wakes_granted,
            wakes_used: tags.wakes_used,
            usage: Usage::now(),
            at: Instant::now(),
        }
    }

    /// At the end every tag is back, each was had for one completed command, and no more waiters
    /// were woken than tags came back.
    fn check<O: Owner>(&self, set: &TagSet, device: &Device<'_, O>) -> Result<(), LabError> {
        let counts = self.counts(set, device);
        let (ios, in_use, waiting) = (counts.ios.iter().sum(), set.in_use(), set.waiting());
        if counts.gets != ios || counts.puts != ios || in_use != 0 || waiting != 0 {
            let Counts { gets, puts, .. } = counts;
            return Err(LabError::Sums { gets, puts, ios, in_use, waiting });
        }
        // Each put grants one wake-up at most, but where all waiters are woken on purpose.
        let Statistics { wakes_granted: granted, wakes_passed_on: passed_on, .. } =
            set.statistics();
        if self.policy != PolicyName::WakeAll && granted > counts.puts + passed_on {
            return Err(LabError::Herd { granted, puts: counts.puts, passed_on });
        }
        Ok(())
    }
}

/// Lanes of a device: one for each CPU that this process may use.
fn lanes() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_LANES)
}
