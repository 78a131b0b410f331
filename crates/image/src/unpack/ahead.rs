//! The steps of a walk some way ahead of their use, with the data of the files on its way.
//!
//! A thread of its own walks: it waits for directories and inodes while the steps before are
//! unpacked.

use super::walk::{Course, Step, Walk};
use super::{Subtree, UnpackError};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Builder, Scope};
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{OpenFile, Volume};

/// Most steps ahead, not counting those that are handed over together.
const STEPS_MAX: usize = 1024;

/// Bytes of data ahead; the last batch may pass it.
const BYTES_MAX: u64 = 24 << 20;

/// Most bytes of one file that are read ahead of the file's turn; the file's own reader goes on
/// from there.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Steps that are handed over together, and whose files are read in the order of the device.
const BATCH: usize = 64;

/// Bytes that end a batch before it is full.
const BATCH_BYTES: u64 = 4 << 20;

/// A step, with what is known of it.
pub(super) struct Upcoming {
    /// Path from the directory on top, without slashes at its ends; empty for that itself.
    pub(super) path: Vec<u8>,
    pub(super) inode: Arc<Inode>,
    /// Whether it is a name; else it is the end of a directory.
    pub(super) entering: bool,
    /// The file, if it is a regular one and can be opened.
    pub(super) file: Option<OpenFile>,
}

/// Steps that are handed over together.
#[derive(Default)]
struct Batch {
    steps: VecDeque<Upcoming>,
    /// Bytes that were asked for.
    bytes: u64,
}

/// Steps between the thread that walks and the one that unpacks.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// A batch came, or the walk ended.
    filled: Condvar,
    /// A batch was taken, or the reader is gone.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    steps: usize,
    bytes: u64,
    has_ended: bool,
    /// The error at which the walk ended.
    error: Option<UnpackError>,
    /// Nothing more is taken.
    is_over: bool,
}

/// A walk that is ahead of its reader.
pub(super) struct Ahead<'q> {
    queue: &'q Queue,
    batch: VecDeque<Upcoming>,
}

impl<'q> Ahead<'q> {
    /// Starts the walk.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        queue: &'q Queue,
        subtree: Subtree<'scope>,
        course: Course,
    ) -> Result<Self, UnpackError>
    where
        'q: 'scope,
    {
        let builder = Builder::new().name("walk-ahead".to_owned());
        builder
            .spawn_scoped(scope, move || queue.fill(subtree, course))
            .map_err(UnpackError::Thread)?;
        Ok(Self { queue, batch: VecDeque::new() })
    }

    /// The next step; `None` at the end. An error comes when all before it was handed out.
    pub(super) fn next(&mut self) -> Result<Option<Upcoming>, UnpackError> {
        if self.batch.is_empty() {
            self.batch = self.queue.take()?;
        }
        Ok(self.batch.pop_front())
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.queue.state.lock().is_over = true;
        self.queue.taken.notify_one();
    }
}

impl Queue {
    /// Walks to the end.
    fn fill(&self, subtree: Subtree<'_>, course: Course) {
        /// Says that the walk has ended, also if it panicked.
        struct End<'q>(&'q Queue, Option<UnpackError>);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                (state.has_ended, state.error) = (true, self.1.take());
                self.0.filled.notify_one();
            }
        }
        let mut end = End(self, None);
        let mut walk = Walk::new(subtree, course.order);
        loop {
            let mut batch = Batch::default();
            let volume = Some(subtree.volume).filter(|_| course.data);
            let walked = batch.fill(&mut walk, volume);
            let is_end = batch.steps.is_empty();
            batch.begin_reads();
            if !is_end && !self.add(batch) {
                return;
            }
            match walked {
                Err(error) => {
                    end.1 = Some(error);
                    return;
                }
                Ok(()) if is_end => return,
                Ok(()) => {}
            }
        }
    }

    /// Hands a batch over once there is room; `false` if it is not wanted.
    fn add(&self, batch: Batch) -> bool {
        let mut state = self.state.lock();
        while !state.is_over && (state.steps >= STEPS_MAX || state.bytes >= BYTES_MAX) {
            self.taken.wait(&mut state);
        }
        (state.steps, state.bytes) = (state.steps + batch.steps.len(), state.bytes + batch.bytes);
        state.batches.push_back(batch);
        self.filled.notify_one();
        !state.is_over
    }

    /// The next steps; none at the end.
    fn take(&self) -> Result<VecDeque<Upcoming>, UnpackError> {
        let mut state = self.state.lock();
        loop {
            if let Some(batch) = state.batches.pop_front() {
                let Batch { steps, bytes } = batch;
                (state.steps, state.bytes) = (state.steps - steps.len(), state.bytes - bytes);
                self.taken.notify_one();
                return Ok(steps);
            }
            if state.has_ended {
                return state.error.take().map_or(Ok(VecDeque::new()), Err);
            }
            self.filled.wait(&mut state);
        }
    }
}

impl Batch {
    /// Walks until the batch is full, or to the end; files are opened on `volume`.
    fn fill(
        &mut self,
        walk: &mut Walk<'_>,
        volume: Option<&Arc<Volume>>,
    ) -> Result<(), UnpackError> {
        while self.steps.len() < BATCH && self.bytes < BATCH_BYTES {
            let Some(step) = walk.step()? else { break };
            self.add(step, walk.path().to_vec(), volume);
        }
        Ok(())
    }

    fn add(&mut self, step: Step, path: Vec<u8>, volume: Option<&Arc<Volume>>) {
        let (inode, entering) = match step {
            Step::Enter(inode) => (inode, true),
            Step::Leave(inode) => (inode, false),
        };
        // Of a file with several names most need no data.
        let volume = volume.filter(|_| {
            let state = inode.read();
            state.file_type() == FileType::Regular && state.core.nlink == 1
        });
        // An error comes again when the file has its turn.
        let file = volume.and_then(|volume| OpenFile::open_inode(volume, &inode).ok());
        self.bytes += file.as_ref().map_or(0, ahead_of);
        self.steps.push_back(Upcoming { path, inode, entering, file });
    }

    /// Begins to read the files.
    fn begin_reads(&self) {
        let files = self.steps.iter().filter_map(|step| step.file.as_ref());
        OpenFile::will_need_all(files.map(|file| (file, 0..ahead_of(file))));
    }
}

/// Bytes of a file that are read ahead of its turn.
fn ahead_of(file: &OpenFile) -> u64 {
    file.size().min(FILE_BYTES_MAX)
}
