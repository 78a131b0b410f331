//! A submitting thread: keeps a batch of I/Os outstanding until it is told to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use undercroft_block::{
    Bio, Buffer, CompletionQueue, Finished, Plug, SECTOR_SIZE, Sector, Segment,
};

use super::device::TestDevice;
use super::outcome::Access;
use super::work::FileWork;
use crate::error::LabError;
use crate::measure::crew::{Gate, dismiss, muster};
use crate::measure::rate::{Window, total};

/// What all threads of a run do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pub(super) threads: usize,
    pub(super) batch: usize,
    /// Whether each thread claims a hardware queue.
    pub(super) claim: bool,
    pub(super) work: FileWork,
    pub(super) duration: Duration,
    pub(super) seed: u64,
}

/// Runs the threads of `crowd` on `device` and counts their I/Os.
///
/// # Errors
/// A thread or a hardware queue cannot be had, or an I/O failed.
pub(super) fn run(device: &TestDevice, crowd: &Crowd) -> Result<Window, LabError> {
    let counts: Vec<CachePadded<AtomicU64>> =
        (0..crowd.threads).map(|_| CachePadded::default()).collect();
    let stop = AtomicBool::new(false);
    let gate = Gate::default();
    thread::scope(|scope| {
        let (counts, stop) = (&counts, &stop);
        let life = |index: usize| Worker::new(device, crowd, index).live(&counts[index], stop);
        let threads = muster(scope, &gate, crowd.threads, life)?;
        gate.open();
        let window = Window::measure(crowd.duration, || total(counts));
        stop.store(true, Ordering::Relaxed);
        dismiss(threads).into_iter().collect::<Result<(), LabError>>()?;
        Ok(window)
    })
}

/// One thread of the crowd.
struct Worker<'a> {
    device: &'a TestDevice,
    crowd: &'a Crowd,
    random: fastrand::Rng,
    /// Blocks of the device that are used.
    blocks: u64,
    /// Buffers of reads that are not on their way.
    buffers: Vec<Buffer>,
    /// What writes write, always the same.
    contents: Segment,
}

impl<'a> Worker<'a> {
    fn new(device: &'a TestDevice, crowd: &'a Crowd, index: usize) -> Self {
        let bytes = crowd.work.block_bytes as usize;
        let buffer = || device.pool.get_zeroed(bytes);
        Self {
            device,
            crowd,
            random: fastrand::Rng::with_seed(crowd.seed.wrapping_add(index as u64)),
            blocks: (crowd.work.file_bytes / crowd.work.block_bytes).max(1),
            buffers: match crowd.work.access {
                Access::Read => (0..crowd.batch).map(|_| buffer()).collect(),
                Access::Write => Vec::new(),
            },
            contents: Segment::from(buffer()),
        }
    }

    fn live(mut self, count: &AtomicU64, stop: &AtomicBool) -> Result<(), LabError> {
        let device = &self.device.device;
        let _claim = self.crowd.claim.then(|| device.claim()).transpose()?;
        let queue = CompletionQueue::new();
        let plug = Plug::new(device);
        let (mut outstanding, mut done) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            for _ in outstanding..self.crowd.batch {
                plug.submit(self.bio().in_queue(&queue, 0));
            }
            outstanding = self.crowd.batch;
            // Flushes the plug first.
            self.take_back(queue.wait())?;
            let mut failed = None;
            let ended =
                1 + queue.poll_each(|one| failed = self.take_back(one).err().or(failed.take()));
            failed.map_or(Ok(()), Err)?;
            outstanding -= ended;
            done += ended as u64;
            count.store(done, Ordering::Relaxed);
        }
        for _ in 0..outstanding {
            self.take_back(queue.wait())?;
        }
        Ok(())
    }

    fn bio(&mut self) -> Bio {
        let block = self.random.u64(..self.blocks);
        let sector = Sector(block * (self.crowd.work.block_bytes / SECTOR_SIZE));
        match self.buffers.pop() {
            Some(buffer) => Bio::read(sector, buffer),
            None => Bio::write(sector, self.contents.clone()),
        }
    }

    fn take_back(&mut self, finished: Finished) -> Result<(), LabError> {
        let completion = finished.completion;
        completion.result?;
        self.buffers.extend(completion.buffer);
        Ok(())
    }
}
