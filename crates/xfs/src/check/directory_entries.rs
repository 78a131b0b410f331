//! One directory: its entries, and what they say about other inodes
//! (docs/format/directories.md#names).

use super::directory::{DEFECTS_MAX, Directory, STRUCTURE};
use super::directory_index;
use super::forks::Fork;
use super::inode_table::{link_sum, name_sum};
use super::listing::Listing;
use super::subject::{Scan, Subject};
use super::superblocks::rooted_inodes;
use crate::bytes::be32;
use crate::format::dir_data::{self, DataEntry, Item};
use crate::format::dir_layout::DirLayout;
use crate::format::dir_shortform::{self, ShortForm};
use crate::format::{BufferKind, EntryType, Extent, ForkFormat, dir_block};
use crate::inode::ForkKind;
use crate::units::{FileBlock, InodeNumber};

/// Checks a directory and records its entries in the table of inodes.
pub(super) fn check(scan: &Scan<'_>, subject: &Subject<'_>, fork: &Fork) {
    let layout = DirLayout::new(scan.checker.geometry());
    let listing = Listing::default();
    let mut directory = Directory { scan, subject, fork, layout, listing, seen: [false; 2] };
    if subject.core.data_format == ForkFormat::Local {
        directory.short();
    } else {
        directory.blocks();
    }
    directory.finish();
}

impl Directory<'_, '_> {
    /// Short form: "." is implied, ".." is in the header.
    fn short(&mut self) {
        let (checker, geometry) = (self.scan.checker, self.scan.checker.geometry());
        let room = self.subject.fork_bytes(checker, ForkKind::Data);
        let size = usize::try_from(self.subject.core.size).unwrap_or(usize::MAX);
        let Some(bytes) = room.get(..size) else {
            // The verifier of the core reported the size.
            return self.lose();
        };
        if let Err(what) = dir_shortform::verify_shortform(bytes, self.layout, geometry) {
            self.error(what);
        }
        let Ok(short) = ShortForm::new(bytes, self.layout) else {
            return self.lose();
        };
        self.dot(self.subject.number);
        self.dot_dot(short.parent());
        for (index, found) in (0..).zip(short.entries()) {
            match found {
                Ok(short) => self.name(&short.entry, index),
                Err(_) => return self.lose(),
            }
        }
    }

    fn blocks(&mut self) {
        let geometry = self.scan.checker.geometry();
        let (leaf, unit) = (geometry.dir_leaf_block(), geometry.dir_block_blocks());
        let size = self.subject.core.size;
        if !self.fork.complete {
            self.lose();
        }
        let end = self.fork.extents.last().map_or(FileBlock(0), Extent::end);
        if end.0 <= u64::from(unit) && self.listing.complete {
            let block = 1_u64 << self.layout.block_log;
            self.scan.checker.expect(STRUCTURE, self.subject.location(), "size", size, block);
            self.data_block(FileBlock(0), BufferKind::DirBlock);
            self.check_duplicates();
            return;
        }
        let data_end = self.fork.extents.iter().rfind(|extent| extent.offset < leaf);
        let data_end = data_end.map_or(0, |extent| extent.end().0.min(leaf.0));
        let bytes = data_end << geometry.block_log;
        if self.fork.complete {
            self.scan.checker.expect(STRUCTURE, self.subject.location(), "size", size, bytes);
        }
        let mut defects = 0;
        let (fork, checker) = (self.fork, self.scan.checker);
        for block in fork.ahead(checker, fork.units(0, leaf.0, unit.into()), unit) {
            if !self.data_block(block, BufferKind::DirData) {
                defects += 1;
                if defects == DEFECTS_MAX {
                    self.error("too many damaged blocks; the rest was not looked at");
                    return self.lose();
                }
            }
        }
        self.check_duplicates();
        directory_index::check(self);
    }

    /// Reads a block of entries; `false` if it is damaged.
    fn data_block(&mut self, at: FileBlock, kind: BufferKind) -> bool {
        let checker = self.scan.checker;
        let unit = checker.geometry().dir_block_blocks();
        let (block, sound) = match self.fork.read(checker, kind, at, unit) {
            Ok(block) => (block, true),
            Err(defect) => {
                let location = self.fork.location(at);
                match checker.report_defect(STRUCTURE, location, defect) {
                    Some(block) => (block, false),
                    None => {
                        self.lose();
                        return false;
                    }
                }
            }
        };
        let number = self.layout.data_block(at);
        let bytes: &[u8] = &block.bytes;
        let end = if kind == BufferKind::DirBlock { table_base(bytes) } else { bytes.len() };
        for found in dir_data::items(bytes, self.layout, end) {
            match found {
                Ok((_, Item::Free(_))) => {}
                Ok((offset, Item::Used(entry))) => self.data_entry(number, offset, &entry),
                Err(_) => self.lose(),
            }
        }
        if sound {
            self.listing.set_longest(number, dir_data::longest(bytes, self.layout));
        } else {
            self.listing.exact = false;
        }
        sound
    }

    fn data_entry(&mut self, block: u32, offset: usize, entry: &DataEntry<'_>) {
        let start = self.layout.data_start();
        let pointer = self.layout.pointer(block, offset);
        let first = block == 0 && offset == start;
        let second = block == 0 && offset == start + self.layout.entry_size(1);
        match entry.name {
            b"." => {
                if !first {
                    self.error("the entry \".\" is not the first");
                }
                self.typed_as_directory(entry);
                self.dot(entry.inode);
                self.listing.push(self.layout.hash(b"."), pointer, name_sum(b"."));
            }
            b".." => {
                if !second {
                    self.error("the entry \"..\" is not the second");
                }
                self.typed_as_directory(entry);
                self.dot_dot(entry.inode);
                self.listing.push(self.layout.hash(b".."), pointer, name_sum(b".."));
            }
            _ => self.name(entry, pointer),
        }
    }

    fn typed_as_directory(&self, entry: &DataEntry<'_>) {
        if self.layout.ftype && entry.ftype != EntryType::Directory {
            let name = String::from_utf8_lossy(entry.name);
            self.error(format!("entry {name:?} has type {:?}", entry.ftype));
        }
    }

    fn dot(&mut self, target: InodeNumber) {
        if target != self.subject.number {
            self.error(format!("the entry \".\" leads to inode {target}"));
        }
        if std::mem::replace(&mut self.seen[0], true) {
            self.error("two entries \".\"");
        }
        self.subject.slot().add_link();
    }

    fn dot_dot(&mut self, target: InodeNumber) {
        if std::mem::replace(&mut self.seen[1], true) {
            self.error("two entries \"..\"");
            return;
        }
        self.scan.table.set_dot_dot(self.subject.position, target);
        match self.scan.table.get(self.scan.checker.geometry(), target) {
            Some(slot) => slot.add_link(),
            None => self.error_of_names(format!(
                "the entry \"..\" leads to inode {target}, which does not exist"
            )),
        }
    }

    /// An entry other than "." and "..".
    fn name(&mut self, entry: &DataEntry<'_>, pointer: u32) {
        let (checker, name) = (self.scan.checker, entry.name);
        let geometry = checker.geometry();
        let text = || format!("{:?}", String::from_utf8_lossy(name));
        if name.contains(&b'/') || name.contains(&0) || matches!(name, b"." | b"..") {
            self.error(format!("illegal name {}", text()));
        }
        let sum = if self.layout.fold_case {
            name_sum(&name.to_ascii_lowercase())
        } else {
            name_sum(name)
        };
        self.listing.push(self.layout.hash(name), pointer, sum);
        if rooted_inodes(checker.volume.superblock(), geometry).contains(&entry.inode) {
            self.error_of_names(format!("entry {} leads to a metadata file", text()));
            return;
        }
        let (own, core) = (self.subject.number, self.subject.core);
        let from = (self.subject.position, entry.ftype);
        let sum = || link_sum(own, core.generation, name);
        if !self.scan.table.add_entry(geometry, entry.inode, from, sum) {
            let inode = entry.inode;
            let what = format!("entry {} leads to inode {inode}, which does not exist", text());
            self.error_of_names(what);
        }
    }

    /// No name is there twice.
    fn check_duplicates(&mut self) {
        self.listing.sort();
        let twice = self
            .listing
            .entries
            .windows(2)
            .filter(|pair| (pair[0].hash, pair[0].name) == (pair[1].hash, pair[1].name));
        for pair in twice {
            let (block, offset) = self.layout.split_pointer(pair[1].pointer);
            let what = format!("the entry at offset {offset} has the name of another one");
            self.error_at(self.layout.data_file_block(block), what);
        }
    }

    fn finish(&mut self) {
        if self.subject.core.data_format == ForkFormat::Local {
            self.check_duplicates();
        }
        if self.listing.complete {
            for (seen, name) in self.seen.iter().zip([".", ".."]) {
                if !seen {
                    self.error(format!("no entry {name:?}"));
                }
            }
        }
    }
}

/// Where the tiling of a block in block form ends, independent of its tail.
fn table_base(bytes: &[u8]) -> usize {
    let tail = bytes.len() - dir_block::TAIL_SIZE;
    let count = be32(bytes, tail) as usize;
    tail.saturating_sub(count.saturating_mul(8))
}
