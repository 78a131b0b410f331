//! The facts known about every inode: from its core, and from directories and attributes.
//!
//! Threads that look at directories in any order add to the record of the inode that an entry leads
//! to; the two sides are compared at the end. Sums of hashes stand for the sets of directory
//! entries and of parent pointers, so that an inode takes a fixed, small amount of memory.

use super::group::Group;
use crate::format::{EntryType, FileType, InodeChunkRecord};
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::units::{AgNumber, InodeNumber};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

const INODES: usize = INODES_PER_CHUNK as usize;

/// Independent parts, so that threads seldom meet.
const SHARDS: usize = 16;

/// One inode.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Links found (entries, "." and the ".." of children), less those that the core counts.
    balance: AtomicU32,
    /// The place in the table of the last directory found with an entry for this inode, and 1.
    parent: AtomicU32,
    /// Types that entries give it, one bit per [`EntryType`].
    pub(super) entry_types: AtomicU16,
    /// Type, as [`Kind`].
    kind: AtomicU8,
    /// [`REFLINK`](Self::REFLINK) and the other flags.
    pub(super) flags: AtomicU8,
}

/// The kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Free, or without a place on the device.
    Free,
    /// In use, but its core cannot be read.
    Damaged,
    /// In use.
    File(FileType),
}

const TYPES: [FileType; 7] = [
    FileType::Fifo,
    FileType::Character,
    FileType::Directory,
    FileType::Block,
    FileType::Regular,
    FileType::Symlink,
    FileType::Socket,
];

impl Slot {
    /// The inode may share blocks.
    pub(super) const REFLINK: u8 = 1;
    /// Part of the metadata directory tree.
    pub(super) const METADATA: u8 = 2;
    /// Its parent pointers could be read.
    pub(super) const POINTERS_KNOWN: u8 = 4;
    /// Its core counts no links.
    pub(super) const UNLINKED: u8 = 8;

    pub(super) fn kind(&self) -> Kind {
        match self.kind.load(Ordering::Relaxed) {
            0 => Kind::Free,
            1 => Kind::Damaged,
            number => Kind::File(TYPES[usize::from(number - 2)]),
        }
    }

    pub(super) fn set_kind(&self, kind: Kind) {
        let number = match kind {
            Kind::Free => 0,
            Kind::Damaged => 1,
            Kind::File(file_type) => {
                let at = TYPES.iter().position(|known| *known == file_type);
                // All types are in the table.
                2 + at.unwrap_or(0) as u8
            }
        };
        self.kind.store(number, Ordering::Relaxed);
    }

    pub(super) fn set_flag(&self, flag: u8) {
        self.flags.fetch_or(flag, Ordering::Relaxed);
    }

    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    pub(super) fn add_link(&self) {
        self.balance.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the links that the core counts.
    pub(super) fn set_counted(&self, links: u32) {
        self.balance.fetch_sub(links, Ordering::Relaxed);
        if links == 0 {
            self.set_flag(Self::UNLINKED);
        }
    }

    /// The links found, less those that the core counts; wraps around.
    pub(super) fn balance(&self) -> u32 {
        self.balance.load(Ordering::Relaxed)
    }

    /// Whether any entry leads here.
    pub(super) fn has_entries(&self) -> bool {
        self.entry_types.load(Ordering::Relaxed) != 0
    }

    /// Records an entry of type `entry_type` in the directory at a place of the table.
    pub(super) fn add_entry(&self, directory: Position, entry_type: EntryType) {
        self.add_link();
        self.parent.store(directory.0, Ordering::Relaxed);
        self.entry_types.fetch_or(1 << entry_type as u8, Ordering::Relaxed);
    }

    /// Where the last directory is that was found with an entry for this inode.
    pub(super) fn parent(&self) -> Option<Position> {
        Some(Position(self.parent.load(Ordering::Relaxed))).filter(|place| place.0 != 0)
    }
}

/// A place in the table, and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position(u32);

/// A chunk and its inodes.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) ag: AgNumber,
    pub(super) record: InodeChunkRecord,
    slots: Box<[Slot; INODES]>,
    /// Where there are parent pointers: sums over the directory entries that lead to inodes, less those
    /// over their pointers.
    sums: Option<Box<[AtomicU64; INODES]>>,
}

impl Chunk {
    /// The inodes that exist, with their index.
    pub(super) fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let existing = self.record.existing();
        (0..INODES_PER_CHUNK)
            .zip(self.slots.iter())
            .filter(move |(index, _)| existing >> index & 1 != 0)
    }

    pub(super) fn slot(&self, index: u32) -> &Slot {
        &self.slots[index as usize % INODES]
    }

    fn sum(&self, index: u32) -> Option<&AtomicU64> {
        self.sums.as_ref().map(|sums| &sums[index as usize % INODES])
    }

    /// Adds to the sum of an inode what one of its parent pointers is.
    pub(super) fn add_pointer(&self, index: u32, sum: u64) {
        if let Some(sums) = self.sum(index) {
            sums.fetch_sub(sum, Ordering::Relaxed);
        }
    }

    /// Whether the parent pointers of an inode are those of the entries that lead to it.
    pub(super) fn pointers_agree(&self, index: u32) -> bool {
        self.sum(index).is_none_or(|sum| sum.load(Ordering::Relaxed) == 0)
    }

    pub(super) fn is_free(&self, index: u32) -> bool {
        self.record.free >> index & 1 != 0
    }

    /// Number of inode `index`.
    pub(super) fn number(&self, geometry: &Geometry, index: u32) -> InodeNumber {
        InodeNumber(geometry.inode_number(self.ag, self.record.start).0 + u64::from(index))
    }
}

/// All inodes of a volume.
#[derive(Debug)]
pub(super) struct InodeTable {
    /// Ascending.
    pub(super) chunks: Vec<Chunk>,
    /// First chunk of every group, and the end.
    groups: Vec<usize>,
    /// What ".." says, of directories.
    dot_dots: [Mutex<FxHashMap<Position, u64>>; SHARDS],
}

impl InodeTable {
    pub(super) fn new(groups: &[Group], has_pointers: bool) -> Self {
        let total = groups.iter().map(|group| group.chunks.len()).sum();
        let (mut chunks, mut starts) = (Vec::with_capacity(total), vec![0]);
        for (ag, group) in (0_u32..).zip(groups) {
            chunks.extend(group.chunks.iter().map(|record| Chunk {
                ag: AgNumber(ag),
                record: *record,
                slots: Box::new(std::array::from_fn(|_| Slot::default())),
                sums: has_pointers.then(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0)))),
            }));
            starts.push(chunks.len());
        }
        Self { chunks, groups: starts, dot_dots: std::array::from_fn(|_| Mutex::default()) }
    }

    /// The inode of this number, if there is a place for it on the device.
    pub(super) fn get(&self, geometry: &Geometry, inode: InodeNumber) -> Option<&Slot> {
        self.find(geometry, inode).map(|(chunk, index)| self.chunks[chunk].slot(index))
    }

    /// The chunk of an inode and its index there, if there is a place for it on the device.
    fn find(&self, geometry: &Geometry, inode: InodeNumber) -> Option<(usize, u32)> {
        let (ag, agino) = geometry.split_inode(inode);
        let first = *self.groups.get(ag.0 as usize)?;
        let end = *self.groups.get(ag.0 as usize + 1)?;
        let group = &self.chunks[first..end];
        let at = group.partition_point(|chunk| chunk.record.start <= agino).checked_sub(1)?;
        let (chunk, index) = (&group[at], agino.0 - group[at].record.start.0);
        (index < INODES_PER_CHUNK && chunk.record.existing() >> index & 1 != 0)
            .then_some((first + at, index))
    }

    /// The place of inode `index` of a chunk.
    pub(super) fn position(chunk: usize, index: u32) -> Position {
        // There is no memory for more inodes than that.
        let place = (chunk * INODES + index as usize).saturating_add(1);
        Position(u32::try_from(place).unwrap_or(0))
    }

    /// Where an inode is.
    pub(super) fn position_of(&self, geometry: &Geometry, inode: InodeNumber) -> Option<Position> {
        self.find(geometry, inode).map(|(chunk, index)| Self::position(chunk, index))
    }

    fn place(position: Position) -> Option<(usize, u32)> {
        let place = position.0.checked_sub(1)? as usize;
        Some((place / INODES, (place % INODES) as u32))
    }

    /// The inode at a place.
    pub(super) fn at(&self, position: Position) -> Option<&Slot> {
        let (chunk, index) = Self::place(position)?;
        self.chunks.get(chunk).map(|chunk| chunk.slot(index))
    }

    /// The number of the inode at a place.
    pub(super) fn number(&self, geometry: &Geometry, position: Position) -> Option<InodeNumber> {
        let (chunk, index) = Self::place(position)?;
        self.chunks.get(chunk).map(|chunk| chunk.number(geometry, index))
    }

    /// Records an entry for an inode; whether there is a place for it on the device.
    pub(super) fn add_entry(
        &self,
        geometry: &Geometry,
        inode: InodeNumber,
        (directory, entry_type): (Position, EntryType),
        sum: impl FnOnce() -> u64,
    ) -> bool {
        let Some((chunk, index)) = self.find(geometry, inode) else { return false };
        let chunk = &self.chunks[chunk];
        chunk.slot(index).add_entry(directory, entry_type);
        if let Some(sums) = chunk.sum(index) {
            sums.fetch_add(sum(), Ordering::Relaxed);
        }
        true
    }

    fn shard(&self, directory: Position) -> &Mutex<FxHashMap<Position, u64>> {
        &self.dot_dots[directory.0 as usize / INODES % SHARDS]
    }

    /// Records what the ".." of a directory says.
    pub(super) fn set_dot_dot(&self, directory: Position, target: InodeNumber) {
        self.shard(directory).lock().insert(directory, target.0);
    }

    /// What the ".." of a directory says; 0 if it has none.
    pub(super) fn dot_dot(&self, directory: Position) -> u64 {
        self.shard(directory).lock().get(&directory).copied().unwrap_or(0)
    }
}

/// What one directory entry, or the parent pointer that mirrors it, adds to a sum.
#[must_use]
pub fn link_sum(parent: InodeNumber, generation: u32, name: &[u8]) -> u64 {
    mix(parent.0 ^ u64::from(generation).rotate_left(32) ^ name_sum(name))
}

/// Hash of a name that tells different names apart.
pub(super) fn name_sum(name: &[u8]) -> u64 {
    let words = name.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    words.fold(name.len() as u64, |sum, word| mix(sum ^ word))
}

/// The finaliser of SplitMix64.
pub(super) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::samples::geometry;
    use crate::units::AgInode;

    #[test]
    fn inodes_are_found_where_their_chunk_exists() {
        let geometry = geometry(12, 9);
        let record = |start, holemask| InodeChunkRecord {
            start: AgInode(start),
            holemask,
            count: 0,
            freecount: 0,
            free: 0,
        };
        let group = |chunks| Group { chunks, ..Group::default() };
        let table = InodeTable::new(
            &[
                group(vec![record(128, 0), record(256, 0xff00)]),
                group(Vec::new()),
                group(vec![record(64, 0)]),
            ],
            true,
        );
        let found = |ag, inode| {
            table.get(&geometry, geometry.inode_number(AgNumber(ag), AgInode(inode))).is_some()
        };
        assert!(found(0, 128) && found(0, 191) && found(0, 256) && found(2, 127));
        assert!(!found(0, 127) && !found(0, 192) && !found(0, 288) && !found(0, 320));
        assert!(!found(1, 64) && !found(2, 63) && !found(3, 64));
    }

    #[test]
    fn sums_tell_names_and_directories_apart() {
        let sum = |parent, generation, name: &[u8]| link_sum(InodeNumber(parent), generation, name);
        assert_eq!(sum(128, 1, b"name"), sum(128, 1, b"name"));
        assert_ne!(sum(128, 1, b"name"), sum(129, 1, b"name"));
        assert_ne!(sum(128, 1, b"name"), sum(128, 2, b"name"));
        assert_ne!(name_sum(b"name"), name_sum(b"name\0"));
        assert_ne!(name_sum(b"12345678ab"), name_sum(b"ab12345678"));
    }

    #[test]
    fn every_type_survives_the_slot() {
        let slot = Slot::default();
        assert_eq!(slot.kind(), Kind::Free);
        for file_type in TYPES {
            slot.set_kind(Kind::File(file_type));
            assert_eq!(slot.kind(), Kind::File(file_type));
        }
    }
}
