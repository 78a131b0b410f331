//! The targets of the workload.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;

/// A file system. One generator works on all of them.
pub(super) trait Target: Sync {
    /// An open file.
    type File: Send;
    /// Requests of one thread to make files durable, any number in flight.
    type Queue<'t>
    where
        Self: 't;

    /// Makes a directory at the top; the name tells it from others.
    fn make_directory(&self, name: &str) -> Result<usize, LabError>;

    /// Creates a file and opens it.
    fn create(&self, directory: usize, name: &str) -> Result<Self::File, LabError>;

    /// Opens a file that exists.
    fn open(&self, directory: usize, name: &str) -> Result<Self::File, LabError>;

    /// Writes the first `len` bytes of `memory` at `offset`.
    fn write(
        &self,
        file: &Self::File,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        len: usize,
    ) -> Result<(), LabError>;

    /// Makes a file durable.
    fn fsync(&self, file: &Self::File) -> Result<(), LabError>;

    /// Makes everything durable.
    fn sync(&self) -> Result<(), LabError>;

    /// A queue for a thread.
    fn queue(&self) -> Result<Self::Queue<'_>, LabError>;

    /// Starts to make a file durable, and closes it when it is.
    fn submit(queue: &mut Self::Queue<'_>, file: Self::File) -> Result<(), LabError>;

    /// Waits for all that was started; returns the latencies.
    fn finish(queue: &mut Self::Queue<'_>) -> Result<LatencyRecorder, LabError>;

    /// The counters below the workload so far.
    fn counters(&self) -> Counters;
}

/// Counters below the workload; `None` where there is no counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Writes of the journal that made something durable.
    pub(super) log_writes: Option<u64>,
    /// Flushes of the device, and writes that include one.
    pub(super) flushes: Option<u64>,
    /// Times that a submitter waited for a tag or for room in a queue.
    pub(super) tag_waits: Option<u64>,
    /// Bytes written to the device, and read from it.
    pub(super) bytes: Option<(u64, u64)>,
}

impl Counters {
    /// The counts since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| Some(now? - then?);
        Self {
            log_writes: difference(self.log_writes, before.log_writes),
            flushes: difference(self.flushes, before.flushes),
            tag_waits: difference(self.tag_waits, before.tag_waits),
            bytes: self.bytes.zip(before.bytes).map(|(now, then)| (now.0 - then.0, now.1 - then.1)),
        }
    }
}

/// Answers that are still to come, told by callbacks.
#[derive(Default)]
pub(super) struct Answers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    outstanding: u64,
    failure: Option<undercroft_xfs::Error>,
    latencies: LatencyRecorder,
}

impl Answers {
    /// One more is to come.
    pub(super) fn expect(&self) {
        self.state.lock().outstanding += 1;
    }

    /// One answer has come, to a request made at `start`.
    pub(super) fn answered(&self, start: Instant, result: Result<(), undercroft_xfs::Error>) {
        let mut state = self.state.lock();
        state.outstanding -= 1;
        state.latencies.record(start.elapsed());
        if let Err(error) = result {
            state.failure.get_or_insert(error);
        }
        if state.outstanding == 0 {
            self.changed.notify_all();
        }
    }

    /// Waits for all.
    pub(super) fn wait(&self) -> Result<LatencyRecorder, LabError> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.outstanding > 0);
        match state.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(std::mem::take(&mut state.latencies)),
        }
    }
}
