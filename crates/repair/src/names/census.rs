//! What is known of each inode in use: in little memory, as there may be millions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs::format::{EntryType, FileType, Geometry};
use undercroft_xfs::units::{AgInode, AgNumber, InodeNumber};

use crate::chunks::{Chunks, INODES};
use crate::subject::Subject;

/// Inodes of a chunk.
const SLOTS: usize = INODES as usize;

/// What entries say of an inode, and it of itself.
#[derive(Debug, Default)]
struct Slot {
    /// Entries that lead to it; of a file, less the links that it counts.
    balance: AtomicU32,
    /// The place of the last directory with an entry for it, and 1.
    parent: AtomicU32,
    /// What entries say that it is, a bit for each kind.
    told: AtomicU16,
    /// What it is, as an entry says it, and 1; 0 if it is not in use.
    kind: AtomicU8,
}

/// A chunk of inodes.
struct Chunk {
    ag: AgNumber,
    start: AgInode,
    slots: Box<[Slot; SLOTS]>,
    /// Where there are parent pointers: sums over entries that lead to inodes, less those over their own
    /// pointers.
    sums: Option<Box<[AtomicU64; SLOTS]>>,
}

/// A directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    pub(super) generation: u32,
    /// Links that it counts.
    pub(super) links: u32,
    /// Directories in it.
    pub(super) children: u32,
    /// The directory with its entry; 0 if there is none.
    pub(super) parent: u64,
    /// Where its ".." leads.
    pub(super) dot_dot: u64,
}

/// All inodes in use.
pub(super) struct Census {
    pub(super) root: InodeNumber,
    /// Files that the superblock leads to.
    pub(super) rooted: FxHashSet<u64>,
    pub(super) has_pointers: bool,
    /// Ascending.
    chunks: Vec<Chunk>,
    pub(super) directories: BTreeMap<u64, Directory>,
    /// Paths of inodes that were made again.
    pub(super) paths: FxHashMap<u64, Vec<Vec<Vec<u8>>>>,
}

impl Census {
    /// A census of which nothing was counted yet.
    pub(super) fn new(subject: &Subject, chunks: &Chunks, rooted: &[InodeNumber]) -> Self {
        let features = &subject.geometry.features;
        let has_pointers = features.parent_pointers();
        let groups = (0..).map(AgNumber).zip(&chunks.groups);
        let all = groups.flat_map(|(ag, group)| group.keys().map(move |start| (ag, *start)));
        let chunk = |(ag, start)| Chunk {
            ag,
            start,
            slots: Box::new(std::array::from_fn(|_| Slot::default())),
            sums: has_pointers.then(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0)))),
        };
        Self {
            root: subject.geometry.root_inode,
            rooted: rooted.iter().map(|number| number.0).collect(),
            has_pointers,
            chunks: all.map(chunk).collect(),
            directories: BTreeMap::new(),
            paths: FxHashMap::default(),
        }
    }

    fn find(&self, subject: &Subject, number: InodeNumber) -> Option<(usize, usize)> {
        let (ag, agino) = subject.geometry.split_inode(number);
        let at = self.chunks.partition_point(|chunk| (chunk.ag, chunk.start) <= (ag, agino));
        let at = at.checked_sub(1)?;
        let index = agino.0.checked_sub(self.chunks[at].start.0)? as usize;
        (self.chunks[at].ag == ag && index < SLOTS).then_some((at, index))
    }

    fn slot(&self, subject: &Subject, number: InodeNumber) -> Option<&Slot> {
        self.find(subject, number).map(|(chunk, index)| &self.chunks[chunk].slots[index])
    }

    /// Says what an inode is, and the links that it counts, if that matters.
    pub(super) fn know(
        &self,
        subject: &Subject,
        number: InodeNumber,
        kind: FileType,
        links: Option<u32>,
    ) {
        let Some(slot) = self.slot(subject, number) else { return };
        slot.kind.store(EntryType::from(kind) as u8 + 1, Ordering::Relaxed);
        slot.balance.fetch_sub(links.unwrap_or(0), Ordering::Relaxed);
    }

    /// Counts an entry that leads to an inode; whether there is such a place.
    pub(super) fn enter(
        &self,
        subject: &Subject,
        directory: InodeNumber,
        (number, kind): (InodeNumber, EntryType),
        sum: impl FnOnce() -> u64,
    ) -> bool {
        let Some((chunk, index)) = self.find(subject, number) else { return false };
        let chunk = &self.chunks[chunk];
        let slot = &chunk.slots[index];
        slot.balance.fetch_add(1, Ordering::Relaxed);
        slot.told.fetch_or(1 << kind as u8, Ordering::Relaxed);
        let place = self.find(subject, directory).map_or(0, |(at, index)| at * SLOTS + index + 1);
        slot.parent.store(u32::try_from(place).unwrap_or(0), Ordering::Relaxed);
        if let Some(sums) = &chunk.sums {
            sums[index].fetch_add(sum(), Ordering::Relaxed);
        }
        true
    }

    /// Takes from the sum of an inode what one of its parent pointers is.
    pub(super) fn point(&self, subject: &Subject, number: InodeNumber, sum: u64) {
        if let Some((chunk, index)) = self.find(subject, number)
            && let Some(sums) = &self.chunks[chunk].sums
        {
            sums[index].fetch_sub(sum, Ordering::Relaxed);
        }
    }

    /// Forgets the entries that lead to an inode.
    pub(super) fn forget_entries(&self, subject: &Subject, number: InodeNumber) {
        if let Some(slot) = self.slot(subject, number) {
            slot.balance.store(0, Ordering::Relaxed);
            slot.told.store(0, Ordering::Relaxed);
        }
    }

    /// Takes one entry back.
    pub(super) fn leave(&self, subject: &Subject, number: InodeNumber, sum: u64) {
        if let Some((chunk, index)) = self.find(subject, number) {
            let chunk = &self.chunks[chunk];
            chunk.slots[index].balance.fetch_sub(1, Ordering::Relaxed);
            if let Some(sums) = &chunk.sums {
                sums[index].fetch_sub(sum, Ordering::Relaxed);
            }
        }
    }

    /// Whether there is a place for an inode.
    pub(super) fn has_place(&self, subject: &Subject, number: InodeNumber) -> bool {
        self.find(subject, number).is_some()
    }

    /// What an inode is; `None` if it is not in use.
    pub(super) fn kind(&self, subject: &Subject, number: InodeNumber) -> Option<FileType> {
        kind(self.slot(subject, number)?)
    }

    /// Whether entries lead to what is not in use.
    pub(super) fn has_loose_ends(&self) -> bool {
        let is_loose = |slot: &Slot| {
            slot.kind.load(Ordering::Relaxed) == 0 && slot.told.load(Ordering::Relaxed) != 0
        };
        self.chunks.iter().any(|chunk| chunk.slots.iter().any(is_loose))
    }

    /// Every inode in use, ascending.
    pub(super) fn nodes(&self, subject: &Subject) -> impl Iterator<Item = Node> {
        self.chunks.iter().flat_map(move |chunk| {
            chunk.slots.iter().enumerate().filter_map(move |(index, slot)| {
                let agino = AgInode(chunk.start.0 + index as u32);
                let place = slot.parent.load(Ordering::Relaxed).checked_sub(1);
                let parent = place.and_then(|place| {
                    let chunk = self.chunks.get(place as usize / SLOTS)?;
                    let agino = AgInode(chunk.start.0 + place % INODES);
                    Some(subject.geometry.inode_number(chunk.ag, agino))
                });
                let sum = chunk.sums.as_ref().map_or(0, |sums| sums[index].load(Ordering::Relaxed));
                Some(Node {
                    number: subject.geometry.inode_number(chunk.ag, agino),
                    kind: kind(slot)?,
                    balance: slot.balance.load(Ordering::Relaxed),
                    told: slot.told.load(Ordering::Relaxed),
                    parent,
                    has_own_pointers: sum == 0,
                })
            })
        })
    }

    /// Whether an inode is one that no directory leads to, by design.
    pub(super) fn is_root(&self, number: InodeNumber) -> bool {
        number == self.root || self.rooted.contains(&number.0)
    }

    /// The directory of a number and a generation.
    pub(super) fn same_directory(&self, number: InodeNumber, generation: u32) -> bool {
        self.directories.get(&number.0).is_some_and(|it| it.generation == generation)
    }

    /// The generation of a directory.
    pub(super) fn generation(&self, number: InodeNumber) -> u32 {
        self.directories.get(&number.0).map_or(0, |it| it.generation)
    }

    /// The directory with the entry of another one; 0 if there is none.
    pub(super) fn parent(&self, number: u64) -> u64 {
        self.directories.get(&number).map_or(0, |it| it.parent)
    }

    /// The paths that an inode had which was made again.
    pub(super) fn paths(&self, number: InodeNumber) -> &[Vec<Vec<u8>>] {
        self.paths.get(&number.0).map_or(&[], Vec::as_slice)
    }

    /// Whether a directory is another one, or below it.
    pub(super) fn is_below(&self, directory: InodeNumber, above: InodeNumber) -> bool {
        let (mut at, mut met) = (directory.0, FxHashSet::default());
        while at != 0 && met.insert(at) {
            if at == above.0 {
                return true;
            }
            at = self.parent(at);
        }
        false
    }
}

/// An inode in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) number: InodeNumber,
    pub(super) kind: FileType,
    /// Entries that lead to it; of a file, less the links that it counts. Wraps around.
    pub(super) balance: u32,
    /// What entries say that it is, a bit for each kind.
    told: u16,
    /// The last directory with an entry for it.
    pub(super) parent: Option<InodeNumber>,
    /// Its parent pointers are those of its entries.
    pub(super) has_own_pointers: bool,
}

impl Node {
    /// Whether any entry leads to it.
    pub(super) const fn has_entries(&self) -> bool {
        self.told != 0
    }

    /// Whether all entries say what it is.
    pub(super) fn is_told_right(&self, geometry: &Geometry) -> bool {
        let told = (0..16).filter(|bit| self.told >> bit & 1 != 0).filter_map(EntryType::from_raw);
        told.into_iter().all(|told| is_right(geometry, told, self.kind))
    }
}

/// Whether an entry may say this of an inode.
pub(super) fn is_right(geometry: &Geometry, told: EntryType, kind: FileType) -> bool {
    told == EntryType::from(kind)
        || (told == EntryType::Unknown && !geometry.features.ftype())
        // A whiteout is a character device by its mode.
        || (told == EntryType::Whiteout && kind == FileType::Character)
}

fn kind(slot: &Slot) -> Option<FileType> {
    let kind = slot.kind.load(Ordering::Relaxed).checked_sub(1)?;
    EntryType::from_raw(kind)?.file_type()
}
