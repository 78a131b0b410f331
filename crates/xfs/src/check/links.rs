//! Directories against inodes: link counts, types, reachability, "..", parent pointers.

use super::checker::Checker;
use super::inode_table::{Chunk, InodeTable, Kind, Position, Slot};
use super::superblocks::rooted_inodes;
use super::{Location, Report};
use crate::format::{EntryType, FileType, InodeCore, NLINK_MAX, NLINK_PINNED};
use crate::units::InodeNumber;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Inodes that nothing in a directory leads to, by design.
#[derive(Debug)]
struct Roots {
    /// The root directory and, if there is one, that of the metadata.
    directories: Vec<InodeNumber>,
    /// Files that the superblock leads to.
    files: Vec<InodeNumber>,
}

/// Compares what directories say with what inodes say; counts inodes and directories.
pub(super) fn check(checker: &Checker, table: &InodeTable, report: &mut Report) {
    let (geometry, superblock) = (checker.geometry(), checker.volume.superblock());
    let mut roots = Roots {
        directories: vec![superblock.root_inode],
        files: rooted_inodes(superblock, geometry),
    };
    if superblock.features.metadir() {
        roots.directories.push(superblock.metadata_root);
    }
    for root in &roots.directories {
        let kind = table.get(geometry, *root).map(Slot::kind);
        if kind != Some(Kind::File(FileType::Directory)) {
            let what = format!("inode {root} should be a root directory, but is not");
            checker.error("superblock", Location::Volume, what);
        }
    }
    for file in &roots.files {
        let kind = table.get(geometry, *file).map(Slot::kind);
        if kind != Some(Kind::File(FileType::Regular)) {
            let what = format!("inode {file} should be a metadata file, but is not");
            checker.error("superblock", Location::Volume, what);
        }
    }
    let sides = Sides { checker, table };
    let mut reach = Reach { sides: &sides, known: FxHashMap::default() };
    for root in &roots.directories {
        if let Some(place) = table.position_of(geometry, *root) {
            reach.known.insert(place, true);
        }
    }
    for (place, chunk) in table.chunks.iter().enumerate() {
        for (index, slot) in chunk.slots() {
            let number = chunk.number(geometry, index);
            if let Kind::File(kind) = slot.kind() {
                report.inodes += 1;
                report.directories += u64::from(kind == FileType::Directory);
                inode(&sides, &roots, (chunk, index), kind);
                if kind == FileType::Directory {
                    reach.check(number, InodeTable::position(place, index), slot);
                }
            } else {
                not_a_file(&sides, chunk, number, slot);
            }
        }
    }
}

/// What directories and inodes say.
struct Sides<'a> {
    checker: &'a Checker,
    table: &'a InodeTable,
}

impl Sides<'_> {
    /// The directory with the last entry found for an inode; 0 if there is none.
    fn parent(&self, slot: &Slot) -> u64 {
        let number = slot.parent().and_then(|at| self.table.number(self.checker.geometry(), at));
        number.map_or(0, |number| number.0)
    }

    /// The links that the core of an inode counts, read again.
    fn counted(&self, number: InodeNumber) -> Option<u32> {
        let geometry = self.checker.geometry();
        let sectors = (geometry.inode_size() / 512).max(1) as u32;
        let bytes = self.checker.read_bytes(&[(geometry.inode_sector(number), sectors)]).ok()?;
        InodeCore::decode(&bytes, geometry).ok().map(|core| core.nlink)
    }
}

/// A free inode that entries lead to.
fn not_a_file(sides: &Sides<'_>, chunk: &Chunk, number: InodeNumber, slot: &Slot) {
    if slot.kind() == Kind::Free && (slot.has_entries() || slot.balance() > 0) {
        let parent = sides.parent(slot);
        let what = format!("is free in group {}, but directory {parent} leads to it", chunk.ag);
        sides.checker.error("names", Location::Inode(number), what);
    }
}

fn inode(sides: &Sides<'_>, roots: &Roots, (chunk, index): (&Chunk, u32), kind: FileType) {
    let (checker, slot) = (sides.checker, chunk.slot(index));
    let number = chunk.number(checker.geometry(), index);
    let location = Location::Inode(number);
    let is_file_root = roots.files.contains(&number);
    let is_root = is_file_root || roots.directories.contains(&number);
    let balance = slot.balance().wrapping_add(u32::from(is_file_root));
    let unlinked = slot.has_flag(Slot::UNLINKED) && checker.dirty();
    if balance != 0
        && checker.is_complete()
        && !unlinked
        && let Some(nlink) = sides.counted(number)
    {
        checker.expect("inode", location, "nlink", nlink, counted(balance.wrapping_add(nlink)));
    }
    if balance == 0 && slot.has_flag(Slot::UNLINKED) && !unlinked {
        checker.error("names", location, "is in use, but nothing leads to it");
    }
    let allowed = 1 << EntryType::Unknown as u8 | 1 << EntryType::from(kind) as u8;
    let types = slot.entry_types.load(Relaxed);
    // A whiteout is a character device by its mode.
    let whiteout = if kind == FileType::Character { 1 << EntryType::Whiteout as u8 } else { 0 };
    let stray = types & !(allowed | whiteout);
    let untyped = checker.geometry().features.ftype() && types & 1 != 0;
    if stray != 0 || untyped {
        let parent = sides.parent(slot);
        let what = format!("an entry (of directory {parent}?) does not say that it is a {kind:?}");
        checker.error("names", location, what);
    }
    let above = slot.parent().and_then(|place| sides.table.at(place));
    if above.is_some_and(|above| above.has_flag(Slot::METADATA) != slot.has_flag(Slot::METADATA)) {
        let parent = sides.parent(slot);
        let what = format!("the metadata flag differs from that of its directory {parent}");
        checker.error("names", location, what);
    }
    if is_root && slot.has_entries() {
        checker.error("names", location, "is a root, but a directory leads to it");
    }
    if slot.has_flag(Slot::POINTERS_KNOWN) && checker.is_complete() && !chunk.pointers_agree(index)
    {
        let what = "parent pointers are not those of the directory entries that lead here";
        checker.error("parent pointers", location, what);
    }
}

/// The link count of an inode that so many entries lead to.
const fn counted(links: u32) -> u32 {
    if links > NLINK_MAX { NLINK_PINNED } else { links }
}

/// Which directories can be reached from a root.
struct Reach<'a> {
    sides: &'a Sides<'a>,
    known: FxHashMap<Position, bool>,
}

impl Reach<'_> {
    fn check(&mut self, directory: InodeNumber, place: Position, slot: &Slot) {
        let checker = self.sides.checker;
        let (parent, dot_dot) = (self.sides.parent(slot), self.sides.table.dot_dot(place));
        let root = parent == 0 && self.known.get(&place) == Some(&true);
        let expected = if root { directory.0 } else { parent };
        let location = Location::Inode(directory);
        if dot_dot != expected && expected != 0 && checker.is_complete() {
            let what = format!("the entry \"..\" leads to {dot_dot}, the parent is {expected}");
            checker.error("names", location, what);
        }
        let unlinked = slot.has_flag(Slot::UNLINKED) && checker.dirty();
        if !self.reaches_root(place) && checker.is_complete() && !unlinked {
            checker.error("names", location, "cannot be reached from the root directory");
        }
    }

    /// Follows parents until one is known; directories on the way become known too.
    fn reaches_root(&mut self, from: Position) -> bool {
        let (mut path, mut at) = (Vec::new(), from);
        let reached = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            // Until it is decided; a circle ends here.
            self.known.insert(at, false);
            path.push(at);
            match self.sides.table.at(at).and_then(Slot::parent) {
                Some(parent) => at = parent,
                None => break false,
            }
        };
        if reached {
            self.known.extend(path.into_iter().map(|directory| (directory, true)));
        }
        reached
    }
}
