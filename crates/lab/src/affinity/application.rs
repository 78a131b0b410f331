//! An application: reads its device in sequence, with so many I/Os outstanding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use undercroft_block::{
    Bio, BlockDevice, Buffer, CompletionQueue, CpuSet, Finished, Plug, SECTOR_SIZE, Sector,
};

use super::load::Load;
use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;

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
