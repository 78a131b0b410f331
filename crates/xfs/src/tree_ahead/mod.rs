//! Directories that are read ahead of a walk over them.
//!
//! A walk from directory to directory waits for each of them: for its blocks, and for the inodes of
//! its names. Here they are read before their turn, and the clusters of those inodes are begun, so
//! that the walk finds them in memory, or on their way. One thread has many directories under way:
//! each is a [task](Volume::awaited) that reads what depends on what it read before. They are taken
//! in the order of a walk depth first, within a [bound](frontier::Frontier) ahead of it. Where
//! [reads are fast](crate::read_ahead::ReadAhead::is_slow) nothing is read.
//!
//! Errors are left to the walk, which meets them again.

mod frontier;

use self::frontier::{Frontier, WalkPosition};
use crate::error::Error;
use crate::format::{EntryType, FileType};
use crate::ops::{self, Position};
use crate::units::InodeNumber;
use crate::volume::Volume;
use futures_executor::block_on;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

/// Directories that a walk goes through alone: it may be a short one, and the time that the device
/// takes is not known before.
const ALONE: usize = 4;

/// Directories under way at once.
const TASKS: usize = 64;

/// Entries of one directory that are read ahead of the walk, at most; it reads on itself.
const ENTRIES_OF_ONE_MAX: usize = 4096;

/// Entries whose inodes are read together.
const BATCH: usize = 256;

/// The order in which a walk takes the directories of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkOrder {
    /// As the entries are stored.
    Stored,
    /// Sorted by name.
    Names,
}

/// A thread that reads directories ahead of a walk; it ends with this.
#[derive(Debug)]
pub struct TreeAhead {
    volume: Arc<Volume>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Directories that the walk came to before there was a thread.
    reached: usize,
}

#[derive(Debug)]
struct Shared {
    order: WalkOrder,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    frontier: Frontier,
    /// Of the thread.
    waker: Option<Waker>,
    is_over: bool,
}

impl TreeAhead {
    /// For a walk over the directories from `root` on.
    #[must_use]
    pub fn new(volume: &Arc<Volume>, root: InodeNumber, order: WalkOrder) -> Self {
        let state = State { frontier: Frontier::new(root), waker: None, is_over: false };
        let shared = Arc::new(Shared { order, state: Mutex::new(state) });
        Self { volume: Arc::clone(volume), shared, thread: None, reached: 0 }
    }

    /// Says that the walk comes to this directory now.
    pub fn reach(&mut self, directory: InodeNumber) {
        if self.reached < ALONE || self.thread.is_some() {
            self.shared.reach(directory);
        }
        self.reached += 1;
        if self.reached == ALONE && self.volume.cache().ahead().is_slow() {
            let (shared, volume) = (Arc::clone(&self.shared), Arc::clone(&self.volume));
            let builder = std::thread::Builder::new().name("tree-ahead".to_owned());
            // Without it the walk waits more often.
            self.thread = builder.spawn(move || shared.run(&volume)).ok();
        }
    }
}

impl Drop for TreeAhead {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.state.lock();
            state.is_over = true;
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
        // A panic of a thread that only reads ahead is no error of the walk.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn reach(&self, directory: InodeNumber) {
        let waker = {
            let mut state = self.state.lock();
            state.frontier.reach(directory);
            // The thread has left one until there is room.
            if state.frontier.may_take() { state.waker.take() } else { None }
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Reads directories until there are none.
    fn run(&self, volume: &Arc<Volume>) {
        let mut under_way = FuturesUnordered::new();
        block_on(poll_fn(|context| {
            loop {
                let room = TASKS - under_way.len();
                let Some(next) = self.take(room, context) else { return Poll::Ready(()) };
                under_way.extend(next.into_iter().map(|(place, number)| async move {
                    let mut found = Found::default();
                    // The walk meets the error.
                    let _ = found.read(volume, number).await;
                    (place, found)
                }));
                match under_way.poll_next_unpin(context) {
                    Poll::Ready(Some((place, found))) => self.finish(&place, found),
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
        }));
    }

    /// The next directories to be read; `None` at the end. The thread is woken when the walk makes
    /// room for more.
    fn take(&self, room: usize, context: &Context<'_>) -> Option<Vec<(WalkPosition, InodeNumber)>> {
        let mut state = self.state.lock();
        if state.is_over || state.frontier.is_end() {
            return None;
        }
        let next = std::iter::from_fn(|| state.frontier.take()).take(room).collect();
        state.waker = Some(context.waker().clone());
        Some(next)
    }

    fn finish(&self, place: &[u32], mut found: Found) {
        if self.order == WalkOrder::Names {
            found.directories.sort_unstable();
        }
        let below = found.directories.into_iter().map(|(_, number)| number);
        self.state.lock().frontier.finish(place, found.entries, below);
    }
}

/// Entries of a directory.
#[derive(Default)]
struct Found {
    /// The directories among them.
    directories: Vec<(Vec<u8>, InodeNumber)>,
    entries: usize,
}

impl Found {
    /// Reads a directory, and begins to read the inodes of its names.
    async fn read(&mut self, volume: &Arc<Volume>, number: InodeNumber) -> Result<(), Error> {
        let mut next = Position::START;
        while next != Position::END && self.entries < ENTRIES_OF_ONE_MAX {
            let batch = volume.awaited(|volume| batch(volume, number, next)).await?;
            next = batch.next;
            self.entries += batch.inodes.len();
            volume.prefetch_inodes(batch.inodes);
            self.directories.extend(batch.directories);
            for (name, number) in batch.unknown {
                let is_directory = |volume: &Arc<Volume>| {
                    let inode = volume.inode(number)?;
                    let file_type = inode.read().file_type();
                    Ok::<_, Error>(file_type == FileType::Directory)
                };
                if volume.awaited(is_directory).await? {
                    self.directories.push((name, number));
                }
            }
        }
        Ok(())
    }
}

/// Some entries of a directory.
struct Batch {
    inodes: Vec<InodeNumber>,
    directories: Vec<(Vec<u8>, InodeNumber)>,
    /// Those whose type is in their inode alone.
    unknown: Vec<(Vec<u8>, InodeNumber)>,
    /// Where the ones behind them begin.
    next: Position,
}

/// Entries from `next` on.
fn batch(volume: &Volume, directory: InodeNumber, next: Position) -> Result<Batch, Error> {
    let directory = volume.inode(directory)?;
    let (mut inodes, mut directories, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let next = ops::entries(volume, &directory.read(), next, |entry| {
        inodes.push(entry.inode);
        match entry.ftype {
            EntryType::Directory => directories.push((entry.name.to_vec(), entry.inode)),
            EntryType::Unknown => unknown.push((entry.name.to_vec(), entry.inode)),
            _ => {}
        }
        inodes.len() < BATCH
    })?;
    Ok(Batch { inodes, directories, unknown, next })
}
