//! Where files go, and the writers that send them there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::jobs::{Job, Jobs};
use super::outcome::OperationTimes;
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::latency::LatencyRecorder;

/// A file system under test.
pub(super) trait Site: Sync {
    /// An open file.
    type File;

    /// Creates the file of a job.
    fn create(&self, job: &Job) -> Result<Self::File, LabError>;
    /// Writes all of it.
    fn write(&self, file: &mut Self::File, job: &Job) -> Result<(), LabError>;
    /// Makes it have its blocks.
    fn sync(&self, file: &mut Self::File, job: &Job) -> Result<(), LabError>;
    /// Closes it.
    fn close(&self, file: Self::File) -> Result<(), LabError>;
    /// Ends the work when the last file was closed.
    fn finish(&self) -> Result<(), LabError> {
        Ok(())
    }
}

/// Operations on a file in their order, under the names that the source has for them.
pub(super) const OPERATIONS: [&str; 4] = ["createfile", "writefile", "fsync", "closefile"];

/// Times of one kind of operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) latencies: LatencyRecorder,
    pub(super) cpu: Duration,
}

/// The time of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) elapsed: Duration,
    /// By operation.
    pub(super) times: [Times; 4],
}

impl Measured {
    /// The rows of the table of operations.
    pub(super) fn operations(&self) -> Vec<OperationTimes> {
        let rows = OPERATIONS.iter().zip(&self.times);
        rows.map(|(name, times)| {
            let latency = times.latencies.latency();
            let cpu_us = times.cpu.as_secs_f64() * 1e6 / latency.count.max(1) as f64;
            OperationTimes { operation: (*name).to_owned(), cpu_us, latency }
        })
        .collect()
    }
}

/// Has `writers` threads work on the jobs, each taking the next one when it is done with the last.
pub(super) fn run<S: Site>(site: &S, jobs: &Jobs, writers: usize) -> Result<Measured, LabError> {
    let (gate, next) = (Gate::default(), AtomicUsize::new(0));
    let mut measured = Measured::default();
    let done = thread::scope(|scope| -> Result<_, LabError> {
        let crew = muster(scope, &gate, writers, |_| write_files(site, jobs, &next))?;
        let begun = Instant::now();
        gate.open();
        let done = dismiss(crew);
        measured.elapsed = begun.elapsed();
        Ok(done)
    })?;
    site.finish()?;
    for times in done {
        for (all, one) in measured.times.iter_mut().zip(&times?) {
            all.latencies.merge(&one.latencies);
            all.cpu += one.cpu;
        }
    }
    Ok(measured)
}

/// The life of a writer.
fn write_files<S: Site>(site: &S, jobs: &Jobs, next: &AtomicUsize) -> Result<[Times; 4], LabError> {
    let mut times: [Times; 4] = Default::default();
    while let Some(job) = jobs.list.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut watch = Watch::start();
        let mut file = site.create(job)?;
        watch.lap(&mut times[0]);
        site.write(&mut file, job)?;
        watch.lap(&mut times[1]);
        site.sync(&mut file, job)?;
        watch.lap(&mut times[2]);
        site.close(file)?;
        watch.lap(&mut times[3]);
    }
    Ok(times)
}

/// Clocks of a thread.
struct Watch {
    time: Instant,
    cpu: Duration,
}

impl Watch {
    fn start() -> Self {
        Self { time: Instant::now(), cpu: thread_cpu() }
    }

    /// Adds what passed since the last lap.
    fn lap(&mut self, times: &mut Times) {
        let now = Self::start();
        times.latencies.record(now.time - self.time);
        times.cpu += now.cpu.saturating_sub(self.cpu);
        *self = now;
    }
}

/// CPU time of this thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock begins at 0 and its nanoseconds are below a second.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
