//! Directories against inodes: link counts, types, reachability, "..", parent pointers.

use super::checker::Checker;
use super::inode_table::{Chunk, InodeTable, Kind, Slot};
use super::superblocks::rooted_inodes;
use super::{Location, Report};
use crate::format::{EntryType, FileType, NLINK_MAX, NLINK_PINNED};
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
    let mut reach = Reach { checker, table, known: FxHashMap::default() };
    for root in &roots.directories {
        reach.known.insert(root.0, true);
    }
    for chunk in &table.chunks {
        for (index, slot) in chunk.slots() {
            let number = chunk.number(geometry, index);
            if let Kind::File(kind) = slot.kind() {
                report.inodes += 1;
                report.directories += u64::from(kind == FileType::Directory);
                inode(checker, table, &roots, number, slot, kind);
                if kind == FileType::Directory {
                    reach.check(number);
                }
            } else {
                not_a_file(checker, chunk, number, slot);
            }
        }
    }
}

/// A free inode that entries lead to.
fn not_a_file(checker: &Checker, chunk: &Chunk, number: InodeNumber, slot: &Slot) {
    let entries = slot.entries.load(Relaxed);
    if slot.kind() == Kind::Free && (entries != 0 || slot.links.load(Relaxed) > 0) {
        let parent = slot.parent.load(Relaxed);
        let what = format!("is free in group {}, but directory {parent} leads to it", chunk.ag);
        checker.error("names", Location::Inode(number), what);
    }
}

fn inode(
    checker: &Checker,
    table: &InodeTable,
    roots: &Roots,
    number: InodeNumber,
    slot: &Slot,
    kind: FileType,
) {
    let location = Location::Inode(number);
    let is_file_root = roots.files.contains(&number);
    let is_root = is_file_root || roots.directories.contains(&number);
    let links = slot.links.load(Relaxed) + u32::from(is_file_root);
    let nlink = slot.nlink.load(Relaxed);
    let unlinked = nlink == 0 && checker.dirty();
    if nlink != counted(links) && checker.is_complete() && !unlinked {
        checker.expect("inode", location, "nlink", nlink, counted(links));
    }
    if links == 0 && nlink == 0 && !unlinked {
        checker.error("names", location, "is in use, but nothing leads to it");
    }
    let allowed = 1 << EntryType::Unknown as u8 | 1 << EntryType::from(kind) as u8;
    let types = slot.entry_types.load(Relaxed);
    // A whiteout is a character device by its mode.
    let whiteout = if kind == FileType::Character { 1 << EntryType::Whiteout as u8 } else { 0 };
    let stray = types & !(allowed | whiteout);
    let untyped = checker.geometry().features.ftype() && types & 1 != 0;
    if stray != 0 || untyped {
        let parent = slot.parent.load(Relaxed);
        let what = format!("an entry (of directory {parent}?) does not say that it is a {kind:?}");
        checker.error("names", location, what);
    }
    let parent = slot.parent.load(Relaxed);
    let above = table.get(checker.geometry(), InodeNumber(parent)).filter(|_| parent != 0);
    if above.is_some_and(|above| above.has_flag(Slot::METADATA) != slot.has_flag(Slot::METADATA)) {
        let what = format!("the metadata flag differs from that of its directory {parent}");
        checker.error("names", location, what);
    }
    if is_root && slot.entries.load(Relaxed) != 0 {
        checker.error("names", location, "is a root, but a directory leads to it");
    }
    let features = &checker.geometry().features;
    if features.parent_pointers()
        && slot.has_flag(Slot::POINTERS_KNOWN)
        && checker.is_complete()
        && slot.pointers.load(Relaxed) != slot.entries.load(Relaxed)
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
    checker: &'a Checker,
    table: &'a InodeTable,
    known: FxHashMap<u64, bool>,
}

impl Reach<'_> {
    fn check(&mut self, directory: InodeNumber) {
        let Some(slot) = self.table.get(self.checker.geometry(), directory) else { return };
        let (parent, dot_dot) = (slot.parent.load(Relaxed), slot.dot_dot.load(Relaxed));
        let root = parent == 0 && self.known.get(&directory.0) == Some(&true);
        let expected = if root { directory.0 } else { parent };
        let location = Location::Inode(directory);
        if dot_dot != expected && expected != 0 && self.checker.is_complete() {
            let what = format!("the entry \"..\" leads to {dot_dot}, the parent is {expected}");
            self.checker.error("names", location, what);
        }
        let unlinked = slot.nlink.load(Relaxed) == 0 && self.checker.dirty();
        if !self.reaches_root(directory.0) && self.checker.is_complete() && !unlinked {
            self.checker.error("names", location, "cannot be reached from the root directory");
        }
    }

    /// Follows parents until one is known; directories on the way become known too.
    fn reaches_root(&mut self, from: u64) -> bool {
        let (mut path, mut at) = (Vec::new(), from);
        let reached = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            // Until it is decided; a circle ends here.
            self.known.insert(at, false);
            path.push(at);
            let slot = self.table.get(self.checker.geometry(), InodeNumber(at));
            match slot.map(|slot| slot.parent.load(Relaxed)) {
                Some(parent) if parent != 0 => at = parent,
                _ => break false,
            }
        };
        if reached {
            self.known.extend(path.into_iter().map(|directory| (directory, true)));
        }
        reached
    }
}
