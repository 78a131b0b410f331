//! An OLTP mix: threads that read and write at random places and wait for each I/O.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, Plug, PlugThreshold, SECTOR_SIZE, Sector, Segment,
};

use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::latency::LatencyRecorder;
use crate::measure::rate::{Window, total};
use crate::unplug::disk::PluggedDisk;

/// Bytes of a database page.
const PAGE: u64 = 8192;
/// Bytes of an append to the log.
const LOG_RECORD: u64 = 4096;
/// Bytes at the start of the device that the log goes round in.
const LOG_BYTES: u64 = 64 << 20;
/// Pages read in a transaction.
const READS: usize = 3;
/// Transactions for each page that is written without waiting.
const DIRTY_EVERY: u64 = 4;
/// Cookies of bios that are waited for, and of bios that are not.
const WAITED: u64 = 0;
const UNWAITED: u64 = 1;

/// A run of the mix.
pub(super) struct Mix<'a> {
    pub(super) device: &'a Arc<dyn BlockDevice>,
    /// Its disks that hold bios back, which a waiter unplugs first; none where threads do.
    pub(super) plugged: &'a [Arc<PluggedDisk>],
    pub(super) threads: usize,
    pub(super) duration: Duration,
    pub(super) seed: u64,
}

/// What happened.
pub(super) struct Measured {
    pub(super) window: Window,
    /// I/Os of the whole run.
    pub(super) ios: u64,
    /// Times that the device was unplugged, in the whole run.
    pub(super) unplugs: u64,
    /// Times that the lock of a plugged disk was taken, in the whole run.
    pub(super) locks: u64,
    /// Of the I/Os that were waited for.
    pub(super) latencies: LatencyRecorder,
}

/// What one thread did.
struct Done {
    ios: u64,
    unplugs: u64,
    latencies: LatencyRecorder,
}

/// Runs the mix.
///
/// # Errors
/// A thread cannot be started, an I/O failed, or I/Os were lost on the way.
pub(super) fn run(mix: &Mix<'_>) -> Result<Measured, LabError> {
    let counts: Vec<CachePadded<AtomicU64>> =
        (0..mix.threads).map(|_| CachePadded::default()).collect();
    let (stop, gate, log) = (AtomicBool::new(false), Gate::default(), AtomicU64::new(0));
    let count_locks = || mix.plugged.iter().map(|disk| disk.locks()).sum::<u64>();
    let (before, locks_before) = (mix.device.statistics(), count_locks());
    let (window, done) = thread::scope(|scope| {
        let (counts, stop, log) = (&counts, &stop, &log);
        let life = |index: usize| Client::new(mix, index, log).live(&counts[index], stop);
        let threads = muster(scope, &gate, mix.threads, life)?;
        gate.open();
        let window = Window::measure(mix.duration, || total(counts));
        stop.store(true, Ordering::Relaxed);
        let done = dismiss(threads).into_iter().collect::<Result<Vec<Done>, LabError>>()?;
        Ok::<_, LabError>((window, done))
    })?;
    // Draining unplugs all disks once more, which is no part of the mix.
    let locks = count_locks() - locks_before;
    mix.device.drain();
    let passed = mix.device.statistics() - before;
    let ios = done.iter().map(|done| done.ios).sum();
    if passed.bios != ios {
        return Err(LabError::Lost { submitted: ios, counted: passed.bios });
    }
    let mut latencies = LatencyRecorder::default();
    done.iter().for_each(|done| latencies.merge(&done.latencies));
    let unplugs = done.iter().map(|done| done.unplugs).sum();
    Ok(Measured { window, ios, unplugs, locks, latencies })
}

/// One thread of the mix.
struct Client<'a> {
    mix: &'a Mix<'a>,
    /// Bytes appended to the log so far, by all.
    log: &'a AtomicU64,
    random: fastrand::Rng,
    queue: CompletionQueue,
    plug: Plug,
    /// For reads.
    page: Option<Buffer>,
    contents: Arc<Buffer>,
    /// Bios without a waiter that have not ended.
    unwaited: u64,
    done: Done,
}

impl<'a> Client<'a> {
    fn new(mix: &'a Mix<'a>, index: usize, log: &'a AtomicU64) -> Self {
        let plug = if mix.plugged.is_empty() {
            Plug::new(mix.device)
        } else {
            // The disks hold bios back; the thread must not.
            Plug::with_threshold(mix.device, PlugThreshold { bios: 1, bytes: 1 })
        };
        Self {
            mix,
            log,
            random: fastrand::Rng::with_seed(mix.seed.wrapping_add(index as u64)),
            queue: CompletionQueue::new(),
            plug,
            page: Some(Buffer::zeroed(PAGE as usize)),
            contents: Arc::new(Buffer::zeroed(PAGE as usize)),
            unwaited: 0,
            done: Done { ios: 0, unplugs: 0, latencies: LatencyRecorder::default() },
        }
    }

    fn live(mut self, count: &AtomicU64, stop: &AtomicBool) -> Result<Done, LabError> {
        let mut transactions = 0_u64;
        // Something is done however short the run, so that locks can be counted.
        loop {
            self.transaction(transactions.is_multiple_of(DIRTY_EVERY))?;
            transactions += 1;
            count.store(self.done.ios, Ordering::Relaxed);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.unplug();
        while self.unwaited > 0 {
            // Nothing else is outstanding.
            let _ = self.collect()?;
        }
        Ok(self.done)
    }

    fn transaction(&mut self, leaves_dirty_page: bool) -> Result<(), LabError> {
        for _ in 0..READS {
            let page = self.page.take().unwrap_or_else(|| Buffer::zeroed(PAGE as usize));
            let sector = self.random_page();
            self.submit_and_wait(Bio::read(sector, page))?;
        }
        if leaves_dirty_page {
            let bio = Bio::write(self.random_page(), self.contents(PAGE));
            self.plug.submit(bio.in_queue(&self.queue, UNWAITED));
            self.unwaited += 1;
            self.done.ios += 1;
        }
        let bio = Bio::write(self.random_page(), self.contents(PAGE));
        self.submit_and_wait(bio)?;
        let record = self.log.fetch_add(LOG_RECORD, Ordering::Relaxed) % LOG_BYTES;
        let bio = Bio::write(Sector(record / SECTOR_SIZE), self.contents(LOG_RECORD));
        self.submit_and_wait(bio)
    }

    fn contents(&self, bytes: u64) -> Segment {
        Segment::new(&self.contents, 0..bytes as usize)
    }

    fn random_page(&mut self) -> Sector {
        let bytes = self.mix.device.capacity().0 * SECTOR_SIZE;
        let pages = LOG_BYTES / PAGE..bytes / PAGE;
        Sector(self.random.u64(pages) * (PAGE / SECTOR_SIZE))
    }

    fn submit_and_wait(&mut self, bio: Bio) -> Result<(), LabError> {
        let begin = Instant::now();
        self.plug.submit(bio.in_queue(&self.queue, WAITED));
        self.done.ios += 1;
        self.unplug();
        while self.collect()? != ControlFlow::Break(()) {}
        self.done.latencies.record(begin.elapsed());
        Ok(())
    }

    /// As a thread that goes to sleep for an I/O does.
    fn unplug(&mut self) {
        if !self.mix.plugged.is_empty() {
            self.mix.plugged.iter().for_each(|disk| disk.unplug());
            self.done.unplugs += 1;
        }
    }

    /// Waits for one bio to end; breaks if it is the one that was waited for.
    fn collect(&mut self) -> Result<ControlFlow<()>, LabError> {
        let finished = self.queue.wait();
        finished.completion.result?;
        if finished.cookie == UNWAITED {
            self.unwaited -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(page) = finished.completion.buffer {
            self.page = Some(page);
        }
        Ok(ControlFlow::Break(()))
    }
}
