//! Directories that are read ahead of a walk over them.
//!
//! A walk from directory to directory waits for each of them: for its blocks, and for the inodes of
//! its names. Here some threads read them before their turn, and begin to read the clusters of those
//! inodes, so that the walk finds them in memory, or on their way. They take the directories in the order of a walk depth
//! first, and stay within a bound ahead of it. Where [reads are fast](crate::cache::Cache::is_slow)
//! there are no threads.
//!
//! Errors are left to the walk, which meets them again.

use crate::error::Error;
use crate::format::{EntryType, FileType};
use crate::ops::{self, Position};
use crate::units::InodeNumber;
use crate::volume::Volume;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Directories that a walk goes through without threads: it may be a short one, and the time that
/// the device takes is not known before.
const ALONE: usize = 4;

/// Threads that read; each waits for the device nearly all the time.
const THREADS: usize = 32;

/// Directories that were read, and that the walk comes to before one that is to be read now, at
/// most.
const DIRECTORIES_MAX: usize = 256;

/// Entries of those directories at most: their inodes fit into the memory for reads ahead.
const ENTRIES_MAX: usize = 16 << 10;

/// Entries of one directory that are read ahead of the walk, at most; it reads on itself.
const ENTRIES_OF_ONE_MAX: usize = 4096;

/// Directories that are this far below the first are left to the walk: the place of a directory is as
/// long as the way to it.
const DEPTH_MAX: usize = 256;

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

/// Threads that read directories ahead of a walk; they end with this.
#[derive(Debug)]
pub struct TreeAhead {
    volume: Arc<Volume>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Directories that the walk came to before there were threads.
    reached: usize,
}

#[derive(Debug)]
struct Shared {
    order: WalkOrder,
    state: Mutex<State>,
    changed: Condvar,
}

/// The place of a directory in the walk: its number among the directories of its parent, behind
/// the place of that.
type WalkPosition = Vec<u32>;

/// A directory that was met.
#[derive(Debug, PartialEq, Eq)]
enum Known {
    /// By the walk, which was there first.
    Passed,
    /// It is at this place, and the walk has not come to it.
    Ahead(WalkPosition),
    /// By both.
    Done,
}

#[derive(Debug, Default)]
struct State {
    /// Directories to be read.
    unread: BTreeMap<WalkPosition, InodeNumber>,
    /// Directories that were read, or are, before the walk came to them, and their entries.
    ahead: BTreeMap<WalkPosition, usize>,
    /// All directories that were met: a damaged tree may have circles.
    known: FxHashMap<InodeNumber, Known>,
    /// Threads that read one: more may come to `unread`.
    busy: usize,
    is_over: bool,
}

impl TreeAhead {
    /// For a walk over the directories from `root` on.
    #[must_use]
    pub fn new(volume: &Arc<Volume>, root: InodeNumber, order: WalkOrder) -> Self {
        let (volume, shared) = (Arc::clone(volume), Arc::new(Shared::new(root, order)));
        Self { volume, shared, threads: Vec::new(), reached: 0 }
    }

    /// Says that the walk comes to this directory now.
    pub fn reach(&mut self, directory: InodeNumber) {
        if self.reached < ALONE || !self.threads.is_empty() {
            self.shared.reach(directory);
        }
        self.reached += 1;
        if self.reached == ALONE {
            self.start();
        }
    }

    fn start(&mut self) {
        let count = if self.volume.cache().is_slow() { THREADS } else { 0 };
        let start = |_| {
            let (shared, volume) = (Arc::clone(&self.shared), Arc::clone(&self.volume));
            let builder = std::thread::Builder::new().name("tree-ahead".to_owned());
            // With fewer threads, or none, the walk waits more often.
            builder.spawn(move || shared.run(&volume)).ok()
        };
        self.threads = (0..count).filter_map(start).collect();
    }
}

impl Drop for TreeAhead {
    fn drop(&mut self) {
        self.shared.state.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of a thread that only reads ahead is no error of the walk.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn new(root: InodeNumber, order: WalkOrder) -> Self {
        let mut state = State::default();
        state.add(&[], [root]);
        Self { order, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn reach(&self, directory: InodeNumber) {
        let mut state = self.state.lock();
        let known = state.known.entry(directory).or_insert(Known::Passed);
        if let Known::Ahead(place) = known {
            let place = std::mem::take(place);
            *known = Known::Done;
            state.ahead.remove(&place);
        }
        if state.may_take() {
            self.changed.notify_one();
        }
    }

    /// Reads one directory after the other until there are none.
    fn run(&self, volume: &Volume) {
        while let Some((place, directory)) = self.next() {
            let (mut below, mut count) = (Vec::new(), 0);
            // The walk meets the error.
            let _ = read(volume, directory, &mut below, &mut count);
            if self.order == WalkOrder::Names {
                below.sort_unstable();
            }
            let mut state = self.state.lock();
            state.busy -= 1;
            if let Some(entries) = state.ahead.get_mut(&place) {
                *entries = count;
            }
            state.add(&place, below.into_iter().map(|(_, number)| number));
            let is_end = state.is_end();
            drop(state);
            // If there are more to be read, this thread takes one, and wakes another.
            if is_end {
                self.changed.notify_all();
            }
        }
    }

    /// The next directory to be read, once it is not too far ahead; `None` at the end.
    fn next(&self) -> Option<(WalkPosition, InodeNumber)> {
        let mut state = self.state.lock();
        loop {
            if state.is_over || state.is_end() {
                return None;
            }
            if let Some(next) = state.take() {
                if state.may_take() {
                    self.changed.notify_one();
                }
                return Some(next);
            }
            self.changed.wait(&mut state);
        }
    }
}

impl State {
    /// Adds the directories of the one at `place`, in the order of the walk.
    fn add(&mut self, place: &[u32], directories: impl IntoIterator<Item = InodeNumber>) {
        if place.len() > DEPTH_MAX {
            return;
        }
        for (index, directory) in (0..).zip(directories) {
            let place = [place, &[index]].concat();
            let known = match self.known.get(&directory) {
                None => Known::Ahead(place.clone()),
                // Those in it are to be found all the same.
                Some(Known::Passed) => Known::Done,
                Some(Known::Ahead(_) | Known::Done) => continue,
            };
            self.known.insert(directory, known);
            self.unread.insert(place, directory);
        }
    }

    fn is_end(&self) -> bool {
        self.unread.is_empty() && self.busy == 0
    }

    /// Whether there is a directory to be read, and the walk has not too far to go to it.
    fn may_take(&self) -> bool {
        self.unread.first_key_value().is_some_and(|(place, _)| {
            let between = self.ahead.range::<WalkPosition, _>(..place);
            let (mut directories, mut sum) = (0, 0);
            for (_, entries) in between.take(DIRECTORIES_MAX) {
                (directories, sum) = (directories + 1, sum + entries);
            }
            directories < DIRECTORIES_MAX && sum < ENTRIES_MAX
        })
    }

    /// Takes the first directory that is to be read, if it may.
    fn take(&mut self) -> Option<(WalkPosition, InodeNumber)> {
        if !self.may_take() {
            return None;
        }
        let (place, directory) = self.unread.pop_first()?;
        if self.known.get(&directory) != Some(&Known::Done) {
            self.ahead.insert(place.clone(), 0);
        }
        self.busy += 1;
        Some((place, directory))
    }
}

/// Reads a directory, and begins to read the inodes of its names; `below` gets the directories in
/// it, `count` the number of entries.
fn read(
    volume: &Volume,
    number: InodeNumber,
    below: &mut Vec<(Vec<u8>, InodeNumber)>,
    count: &mut usize,
) -> Result<(), Error> {
    let directory = volume.inode(number)?;
    let mut next = Position::START;
    while next != Position::END && *count < ENTRIES_OF_ONE_MAX {
        let mut entries = Vec::with_capacity(BATCH);
        next = ops::entries(volume, &directory.read(), next, |entry| {
            entries.push((entry.name.to_vec(), entry.inode, entry.ftype));
            entries.len() < BATCH
        })?;
        *count += entries.len();
        volume.prefetch_inodes(entries.iter().map(|(_, inode, _)| *inode));
        for (name, inode, ftype) in entries {
            if is_directory(volume, inode, ftype)? {
                below.push((name, inode));
            }
        }
    }
    Ok(())
}

fn is_directory(volume: &Volume, inode: InodeNumber, ftype: EntryType) -> Result<bool, Error> {
    Ok(match ftype {
        EntryType::Unknown => volume.inode(inode)?.read().file_type() == FileType::Directory,
        ftype => ftype == EntryType::Directory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        Shared::new(InodeNumber(1), WalkOrder::Stored)
    }

    fn finish(shared: &Shared, place: &[u32], below: impl IntoIterator<Item = u64>) {
        let mut state = shared.state.lock();
        state.busy -= 1;
        state.add(place, below.into_iter().map(InodeNumber));
    }

    #[test]
    fn directories_come_depth_first_and_once() {
        let shared = shared();
        let mut order = Vec::new();
        while let Some((place, InodeNumber(number))) = shared.next() {
            order.push(number);
            let below: &[u64] = match number {
                1 => &[2, 3],
                2 => &[4, 1],
                // A circle, and a second name.
                3 => &[1, 4, 5],
                _ => &[],
            };
            finish(&shared, &place, below.iter().copied());
        }
        assert_eq!(order, [1, 2, 4, 3, 5]);
    }

    #[test]
    fn the_walk_lets_them_go_on() {
        let shared = shared();
        let (root, _) = shared.next().unwrap();
        finish(&shared, &root, 2..2 * DIRECTORIES_MAX as u64);
        for _ in 1..DIRECTORIES_MAX {
            shared.next().unwrap();
        }
        assert!(shared.state.lock().take().is_none(), "too far ahead");
        std::thread::scope(|scope| {
            let next = scope.spawn(|| shared.next());
            shared.reach(InodeNumber(1));
            let (_, next) = next.join().unwrap().unwrap();
            assert_eq!(next, InodeNumber(DIRECTORIES_MAX as u64 + 1));
        });
    }

    #[test]
    fn large_directories_are_fewer() {
        let shared = shared();
        let (root, _) = shared.next().unwrap();
        finish(&shared, &root, 2..100);
        let mut taken = 1;
        while shared.state.lock().may_take() {
            let (place, _) = shared.next().unwrap();
            taken += 1;
            let mut state = shared.state.lock();
            *state.ahead.get_mut(&place).unwrap() = ENTRIES_OF_ONE_MAX;
        }
        assert_eq!(taken, 1 + ENTRIES_MAX / ENTRIES_OF_ONE_MAX);
    }

    #[test]
    fn directories_far_off_do_not_hold_up_near_ones() {
        let shared = shared();
        let (root, _) = shared.next().unwrap();
        shared.reach(InodeNumber(1));
        finish(&shared, &root, 2..2 * DIRECTORIES_MAX as u64);
        let (first, _) = shared.next().unwrap();
        // While the first is read, those behind it are.
        for _ in 1..DIRECTORIES_MAX {
            shared.next().unwrap();
        }
        assert!(shared.state.lock().take().is_none(), "too far ahead");
        finish(&shared, &first, [10_000]);
        assert_eq!(shared.next().unwrap().1, InodeNumber(10_000));
    }

    #[test]
    fn directories_far_down_are_left_to_the_walk() {
        let shared = shared();
        let mut count = 0;
        while let Some((place, InodeNumber(number))) = shared.next() {
            count += 1;
            shared.reach(InodeNumber(number));
            finish(&shared, &place, [number + 1]);
        }
        assert_eq!(count, 1 + DEPTH_MAX);
    }

    #[test]
    fn a_directory_that_the_walk_has_passed_does_not_count() {
        let shared = shared();
        shared.reach(InodeNumber(1));
        let (place, _) = shared.next().unwrap();
        assert!(shared.state.lock().ahead.is_empty());
        // The walk comes to one before it is met here; what is in it is met all the same.
        shared.reach(InodeNumber(2));
        finish(&shared, &place, [2]);
        let (place, number) = shared.next().unwrap();
        assert_eq!(number, InodeNumber(2));
        assert!(shared.state.lock().ahead.is_empty());
        finish(&shared, &place, [3]);
        assert_eq!(shared.next().unwrap().1, InodeNumber(3));
        assert_eq!(shared.state.lock().ahead.len(), 1);
    }
}
