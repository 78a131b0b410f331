//! The generator: writes files and makes them durable, the same way wherever.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::case::{Case, Workload};
use super::outcome::{FsyncOutcome, Iteration, Mode};
use super::target::{Counters, Target};
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::latency::LatencyRecorder;
use crate::measure::usage::Usage;
use crate::statistics::Spread;

/// Bytes of one write, as fs_mark's.
const WRITE_BYTES: usize = 16 << 10;
/// Random bytes at the end of a name, as fs_mark's.
const RANDOM_BYTES: usize = 24;
/// Bytes of one write of a large file.
const LARGE_WRITE_BYTES: usize = 1 << 20;
/// Sizes of the filebench profile.
const FILEBENCH_SIZES: (f64, f64) = (4096.0, 500e6);

/// The work of one thread in an iteration.
#[derive(Default)]
struct Done {
    files: u64,
    bytes: u64,
    fsyncs: u64,
    /// In calls of the target.
    inside: Duration,
    all: Duration,
    latencies: LatencyRecorder,
}

/// Runs a case.
pub(super) fn run_case<T: Target>(
    target: &T,
    name: String,
    case: &Case,
) -> Result<FsyncOutcome, LabError> {
    let stamp = fastrand::u32(..);
    let directories: Vec<Vec<usize>> = (0..case.threads)
        .map(|thread| {
            let name = |index| format!("{stamp:08x}-{thread}-{index}");
            (0..case.directories).map(|index| target.make_directory(&name(index))).collect()
        })
        .collect::<Result<_, LabError>>()?;
    target.sync()?;
    let contents = contents(case.seed);
    for iteration in 0..case.warm_up {
        run_iteration(target, case, iteration, &directories, &contents)?;
    }
    let (counters, usage, switches) = (target.counters(), Usage::now(), machine_switches());
    let (mut sum, mut iterations, mut rates) = (Done::default(), Vec::new(), Vec::new());
    let (mut most_threads, mut seconds) = (0, 0.0);
    for iteration in case.warm_up..case.warm_up + case.iterations {
        let (counted_before, used_before) = (target.counters(), Usage::now());
        let start = Instant::now();
        let done = run_iteration(target, case, iteration, &directories, &contents)?;
        let elapsed = start.elapsed().as_secs_f64();
        let files: u64 = done.iter().map(|done| done.files).sum();
        let (threads, resident_bytes) = process();
        most_threads = most_threads.max(threads);
        done.iter().for_each(|done| sum.add(done));
        seconds += elapsed;
        rates.push(files as f64 / elapsed);
        let overhead: Duration = done.iter().map(|done| done.all.saturating_sub(done.inside)).sum();
        let counted = target.counters().since(counted_before);
        iterations.push(Iteration {
            count: sum.files,
            files_per_second: files as f64 / elapsed,
            app_overhead_us: overhead.as_micros() as u64,
            resident_bytes,
            cpu_ns_per_file: (Usage::now() - used_before).cpu_ns as f64 / files.max(1) as f64,
            log_writes: counted.log_writes,
            bytes_written_per_file: counted.bytes.map(|bytes| bytes.0 as f64 / files.max(1) as f64),
            bytes_read_per_file: counted.bytes.map(|bytes| bytes.1 as f64 / files.max(1) as f64),
        });
    }
    let spread = Spread::of(&rates);
    let used = Usage::now() - usage;
    let counted = target.counters().since(counters);
    let per_file = |count: u64| count as f64 / sum.files.max(1) as f64;
    let per_fsync =
        |count: Option<u64>| Some(count? as f64 / Some(sum.fsyncs).filter(|n| *n > 0)? as f64);
    let Counters { log_writes, flushes, tag_waits, .. } = counted;
    Ok(FsyncOutcome {
        target: name,
        mode: case.mode,
        threads: case.threads,
        directories: case.directories,
        files: sum.files / case.iterations as u64,
        size: sum.bytes / sum.files.max(1),
        files_per_second: spread.mean,
        bytes_per_second: sum.bytes as f64 / seconds,
        coefficient_of_variation: if spread.mean > 0.0 { spread.stddev / spread.mean } else { 0.0 },
        iterations,
        fsyncs: sum.fsyncs,
        log_writes_per_fsync: per_fsync(log_writes),
        flushes_per_fsync: per_fsync(flushes),
        context_switches_per_file: per_file(used.voluntary + used.involuntary),
        machine_switches_per_file: per_file(machine_switches() - switches),
        cpu_ns_per_file: per_file(used.cpu_ns),
        tag_waits,
        most_threads,
        latency: sum.latencies.latency(),
    })
}

fn run_iteration<T: Target>(
    target: &T,
    case: &Case,
    iteration: usize,
    directories: &[Vec<usize>],
    contents: &Arc<Vec<u8>>,
) -> Result<Vec<Done>, LabError> {
    let gate = Gate::default();
    let writer = |thread: usize, done: Done| {
        let seed = case.seed ^ ((iteration as u64) << 32 | thread as u64);
        Writer { target, case, directories: &directories[thread], contents, seed, done }
    };
    let life = |thread: usize| {
        let mut writer = writer(thread, Done::default());
        let start = Instant::now();
        let result = writer.write_all(iteration);
        writer.done.all = start.elapsed();
        result.map(|()| writer.done)
    };
    let done: Result<Vec<Done>, LabError> = if case.threads == 1 {
        // As a program with one thread would.
        life(0).map(|done| vec![done])
    } else {
        thread::scope(|scope| {
            let threads = muster(scope, &gate, case.threads, life)?;
            gate.open();
            dismiss(threads).into_iter().collect()
        })
    };
    let mut done = done?;
    if case.mode.syncs_all() {
        // By one for all: it is the whole file system that is synced.
        let start = Instant::now();
        target.sync()?;
        done[0].inside += start.elapsed();
        done[0].all += start.elapsed();
        for (thread, done) in done.iter_mut().enumerate() {
            let mut writer = writer(thread, std::mem::take(done));
            writer.sync_afterwards(iteration)?;
            *done = writer.done;
        }
    }
    Ok(done)
}

/// One thread in an iteration.
struct Writer<'a, T> {
    target: &'a T,
    case: &'a Case,
    directories: &'a [usize],
    contents: &'a Arc<Vec<u8>>,
    seed: u64,
    done: Done,
}

impl<T: Target> Writer<'_, T> {
    fn write_all(&mut self, iteration: usize) -> Result<(), LabError> {
        let mut queue = (self.case.mode == Mode::Async).then(|| self.target.queue()).transpose()?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        while let Some(size) = self.next_size(&mut random) {
            let (directory, name) = self.name(iteration, self.done.files);
            let target = self.target;
            let file = self.timed(|_| target.create(directory, &name))?;
            self.write(&file, size)?;
            match (&mut queue, self.case.mode) {
                (Some(queue), _) => {
                    self.done.fsyncs += 1;
                    let start = Instant::now();
                    T::submit(queue, file)?;
                    self.done.inside += start.elapsed();
                }
                (None, Mode::FsyncBeforeClose) => self.fsync(&file)?,
                (None, _) => {}
            }
            self.done.files += 1;
            self.done.bytes += size;
        }
        if let Some(queue) = &mut queue {
            let start = Instant::now();
            self.done.latencies.merge(&T::finish(queue)?);
            self.done.inside += start.elapsed();
        }
        if self.case.mode.syncs_all() { Ok(()) } else { self.sync_afterwards(iteration) }
    }

    /// The work of a mode when all files are written.
    fn sync_afterwards(&mut self, iteration: usize) -> Result<(), LabError> {
        let files = self.done.files;
        let numbers: Box<dyn Iterator<Item = u64>> = match self.case.mode {
            Mode::NoSync | Mode::FsyncBeforeClose | Mode::Async => return Ok(()),
            Mode::SyncFsync => Box::new(files.saturating_sub(1)..files),
            Mode::PostReverseFsync | Mode::SyncPostReverseFsync => Box::new((0..files).rev()),
            Mode::PostFsync | Mode::SyncPostFsync => Box::new(0..files),
        };
        for number in numbers {
            let (directory, name) = self.name(iteration, number);
            let target = self.target;
            let file = self.timed(|_| target.open(directory, &name))?;
            self.fsync(&file)?;
        }
        Ok(())
    }

    fn fsync(&mut self, file: &T::File) -> Result<(), LabError> {
        let start = Instant::now();
        let target = self.target;
        self.timed(|_| target.fsync(file))?;
        self.done.latencies.record(start.elapsed());
        self.done.fsyncs += 1;
        Ok(())
    }

    fn write(&mut self, file: &T::File, size: u64) -> Result<(), LabError> {
        let unit = match self.case.workload {
            Workload::Equal { .. } => WRITE_BYTES,
            Workload::Filebench { .. } => LARGE_WRITE_BYTES,
        };
        let (target, contents) = (self.target, self.contents);
        let mut offset = 0;
        while offset < size {
            let len = unit.min((size - offset) as usize);
            self.timed(|_| target.write(file, offset, contents, len))?;
            offset += len as u64;
        }
        Ok(())
    }

    /// Size of the next file, if there is one.
    fn next_size(&self, random: &mut fastrand::Rng) -> Option<u64> {
        match self.case.workload {
            Workload::Equal { files, size } => (self.done.files < files).then_some(size),
            Workload::Filebench { total } => {
                let left = (total / self.case.threads as u64).saturating_sub(self.done.bytes);
                let (least, most) = FILEBENCH_SIZES;
                let size = (least.ln() + random.f64() * (most / least).ln()).exp() as u64;
                (left > 0).then_some(size.min(left))
            }
        }
    }

    /// Directory and name of a file: 40 bytes as fs_mark 3.3 makes them, a stamp filled up with
    /// tildes and [`RANDOM_BYTES`]. Counted names would not do: their hashes meet each other far
    /// more often than those of random ones, and then a directory looks into its old blocks.
    fn name(&self, iteration: usize, number: u64) -> (usize, String) {
        let directory = self.directories[number as usize % self.directories.len()];
        let mut name = format!("{iteration:08x}~~~~~~~~");
        let mut random = fastrand::Rng::with_seed(self.seed.rotate_left(17) ^ number);
        name.extend((0..RANDOM_BYTES).map(|_| random.digit(36).to_ascii_uppercase()));
        (directory, name)
    }

    fn timed<R>(&mut self, call: impl FnOnce(&mut Self) -> R) -> R {
        let start = Instant::now();
        let result = call(self);
        self.done.inside += start.elapsed();
        result
    }
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.fsyncs += other.fsyncs;
        self.latencies.merge(&other.latencies);
    }
}

/// Bytes that nothing can compress.
fn contents(seed: u64) -> Arc<Vec<u8>> {
    let mut bytes = vec![0; LARGE_WRITE_BYTES];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    Arc::new(bytes)
}

/// Threads and resident bytes of this process; 0 where the system does not say.
fn process() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (field("Threads:"), field("VmRSS:") * 1024)
}

/// Context switches of the machine since it was started; 0 where the system does not say.
fn machine_switches() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("ctxt "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
