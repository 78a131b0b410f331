//! The directories that lie before a walk, in its order.

use crate::units::InodeNumber;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Directories that were read, and that the walk comes to before one that is to be read now, at
/// most.
const DIRECTORIES_MAX: usize = 256;

/// Entries of those directories at most: their inodes fit into the memory for reads ahead.
const ENTRIES_MAX: usize = 16 << 10;

/// Directories that are this far below the first are left to the walk: the place of a directory is as
/// long as the way to it.
const DEPTH_MAX: usize = 256;

/// The place of a directory in the walk: its number among the directories of its parent, behind
/// the place of that.
pub(super) type WalkPosition = Vec<u32>;

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

/// The directories that are to be read before a walk comes to them, not too many at a time.
#[derive(Debug, Default)]
pub(super) struct Frontier {
    /// Directories to be read.
    unread: BTreeMap<WalkPosition, InodeNumber>,
    /// Directories that were read, or are, before the walk came to them, and their entries.
    ahead: BTreeMap<WalkPosition, usize>,
    /// All directories that were met: a damaged tree may have circles.
    known: FxHashMap<InodeNumber, Known>,
    /// Directories that are being read: more may come to `unread`.
    under_way: usize,
}

impl Frontier {
    /// That of a walk that begins at `root`.
    pub(super) fn new(root: InodeNumber) -> Self {
        let mut frontier = Self::default();
        frontier.add(&[], [root]);
        frontier
    }

    /// Notes that the walk has come to this directory.
    pub(super) fn reach(&mut self, directory: InodeNumber) {
        let known = self.known.entry(directory).or_insert(Known::Passed);
        if let Known::Ahead(place) = known {
            let place = std::mem::take(place);
            *known = Known::Done;
            self.ahead.remove(&place);
        }
    }

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

    /// Whether there are no more.
    pub(super) fn is_end(&self) -> bool {
        self.unread.is_empty() && self.under_way == 0
    }

    /// Whether there is a directory to be read, and the walk has not too far to go to it.
    pub(super) fn may_take(&self) -> bool {
        self.unread.first_key_value().is_some_and(|(place, _)| {
            let between = self.ahead.range::<WalkPosition, _>(..place);
            let (mut directories, mut sum) = (0, 0);
            for (_, entries) in between.take(DIRECTORIES_MAX) {
                (directories, sum) = (directories + 1, sum + entries);
            }
            directories < DIRECTORIES_MAX && sum < ENTRIES_MAX
        })
    }

    /// Takes the first directory that is to be read, if it may be.
    pub(super) fn take(&mut self) -> Option<(WalkPosition, InodeNumber)> {
        if !self.may_take() {
            return None;
        }
        let (place, directory) = self.unread.pop_first()?;
        if self.known.get(&directory) != Some(&Known::Done) {
            self.ahead.insert(place.clone(), 0);
        }
        self.under_way += 1;
        Some((place, directory))
    }

    /// Notes that the directory at `place`, which was taken, has so many entries, and these
    /// directories in it, in the order of the walk.
    pub(super) fn finish(
        &mut self,
        place: &[u32],
        entries: usize,
        below: impl IntoIterator<Item = InodeNumber>,
    ) {
        self.under_way -= 1;
        if let Some(count) = self.ahead.get_mut(place) {
            *count = entries;
        }
        self.add(place, below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frontier() -> Frontier {
        Frontier::new(InodeNumber(1))
    }

    /// Ends the read of a directory of few entries.
    fn finish(frontier: &mut Frontier, place: &[u32], below: impl IntoIterator<Item = u64>) {
        frontier.finish(place, 0, below.into_iter().map(InodeNumber));
    }

    #[test]
    fn directories_come_depth_first_and_once() {
        let mut frontier = frontier();
        let mut order = Vec::new();
        while let Some((place, InodeNumber(number))) = frontier.take() {
            order.push(number);
            let below: &[u64] = match number {
                1 => &[2, 3],
                2 => &[4, 1],
                // A circle, and a second name.
                3 => &[1, 4, 5],
                _ => &[],
            };
            assert!(!frontier.is_end());
            finish(&mut frontier, &place, below.iter().copied());
        }
        assert_eq!(order, [1, 2, 4, 3, 5]);
        assert!(frontier.is_end());
    }

    #[test]
    fn the_walk_lets_them_go_on() {
        let mut frontier = frontier();
        let (root, _) = frontier.take().unwrap();
        finish(&mut frontier, &root, 2..2 * DIRECTORIES_MAX as u64);
        for _ in 1..DIRECTORIES_MAX {
            frontier.take().unwrap();
        }
        assert!(frontier.take().is_none(), "too far ahead");
        frontier.reach(InodeNumber(1));
        assert_eq!(frontier.take().unwrap().1, InodeNumber(DIRECTORIES_MAX as u64 + 1));
    }

    #[test]
    fn large_directories_are_fewer() {
        let mut frontier = frontier();
        let (root, _) = frontier.take().unwrap();
        finish(&mut frontier, &root, 2..100);
        let mut taken = 1;
        while let Some((place, _)) = frontier.take() {
            taken += 1;
            frontier.finish(&place, ENTRIES_MAX / 4, []);
        }
        assert_eq!(taken, 1 + 4);
    }

    #[test]
    fn directories_far_off_do_not_hold_up_near_ones() {
        let mut frontier = frontier();
        let (root, _) = frontier.take().unwrap();
        frontier.reach(InodeNumber(1));
        finish(&mut frontier, &root, 2..2 * DIRECTORIES_MAX as u64);
        let (first, _) = frontier.take().unwrap();
        // While the first is read, those behind it are.
        for _ in 1..DIRECTORIES_MAX {
            frontier.take().unwrap();
        }
        assert!(frontier.take().is_none(), "too far ahead");
        finish(&mut frontier, &first, [10_000]);
        assert_eq!(frontier.take().unwrap().1, InodeNumber(10_000));
    }

    #[test]
    fn directories_far_down_are_left_to_the_walk() {
        let mut frontier = frontier();
        let mut count = 0;
        while let Some((place, InodeNumber(number))) = frontier.take() {
            count += 1;
            frontier.reach(InodeNumber(number));
            finish(&mut frontier, &place, [number + 1]);
        }
        assert_eq!(count, 1 + DEPTH_MAX);
    }

    #[test]
    fn a_directory_that_the_walk_has_passed_does_not_count() {
        let mut frontier = frontier();
        frontier.reach(InodeNumber(1));
        let (place, _) = frontier.take().unwrap();
        assert!(frontier.ahead.is_empty());
        // The walk comes to one before it is met here; what is in it is met all the same.
        frontier.reach(InodeNumber(2));
        finish(&mut frontier, &place, [2]);
        let (place, number) = frontier.take().unwrap();
        assert_eq!(number, InodeNumber(2));
        assert!(frontier.ahead.is_empty());
        finish(&mut frontier, &place, [3]);
        assert_eq!(frontier.take().unwrap().1, InodeNumber(3));
        assert_eq!(frontier.ahead.len(), 1);
    }
}
