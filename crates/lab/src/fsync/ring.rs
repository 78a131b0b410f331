//! fsync by io_uring: many in flight from one thread.

#![allow(unsafe_code, reason = "the kernel uses a descriptor until it has answered")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};

use crate::measure::latency::LatencyRecorder;

/// Requests in flight. The kernel serves each by a worker thread of its own.
const DEPTH: usize = 1024;

/// Requests that are not answered, each with its file and its begin.
pub(super) struct FsyncRing {
    ring: IoUring,
    slots: Vec<Option<(File, Instant)>>,
    free: Vec<usize>,
    latencies: LatencyRecorder,
}

impl FsyncRing {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(DEPTH as u32)?,
            slots: (0..DEPTH).map(|_| None).collect(),
            free: (0..DEPTH).collect(),
            latencies: LatencyRecorder::default(),
        })
    }

    /// Starts to make a file durable, and closes it when it is.
    pub(super) fn submit(&mut self, file: File) -> io::Result<()> {
        while self.free.is_empty() {
            self.reap(1)?;
        }
        let Some(slot) = self.free.pop() else { return Ok(()) };
        let entry = opcode::Fsync::new(types::Fd(file.as_raw_fd())).build().user_data(slot as u64);
        self.slots[slot] = Some((file, Instant::now()));
        // SAFETY: the descriptor stays open in its slot until the completion is there, and the
        // operation has no memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed
            .map_err(|_| io::Error::other("the ring has no room for as many as it was made for"))?;
        self.reap(0)
    }

    /// Waits for all; returns the latencies.
    pub(super) fn finish(&mut self) -> io::Result<LatencyRecorder> {
        while self.free.len() < DEPTH {
            self.reap(1)?;
        }
        Ok(std::mem::take(&mut self.latencies))
    }

    fn reap(&mut self, least: usize) -> io::Result<()> {
        self.ring.submit_and_wait(least)?;
        for answer in self.ring.completion() {
            let slot = answer.user_data() as usize;
            if let Some((_, start)) = self.slots[slot].take() {
                self.latencies.record(start.elapsed());
            }
            self.free.push(slot);
            if answer.result() < 0 {
                return Err(io::Error::from_raw_os_error(-answer.result()));
            }
        }
        Ok(())
    }
}

impl Drop for FsyncRing {
    fn drop(&mut self) {
        // The descriptors must stay open until the kernel is done with them; errors are reported by
        // `finish`.
        drop(self.finish());
    }
}
