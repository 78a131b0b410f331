//! Inodes of a volume without parent pointers: their names are found by looking for them.
//!
//! `..` of a directory names its parent, so directories go first: one look through a parent finds
//! all of its directories that move. Then one scan of all directories, none of which is in what goes
//! any more, finds the files.

use super::renumbering::{quota_fields, renumber};
use super::tail_inodes::TailInodes;
use crate::bmap::ForkReader;
use crate::dir::{self, Position};
use crate::error::Error;
use crate::format::FileType;
use crate::inode::ForkKind;
use crate::maintain::shrink::size::Size;
use crate::ops::{self, Parent};
use crate::scan::for_each_from;
use crate::units::{AgInode, AgNumber, InodeNumber};
use crate::volume::Volume;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Directories that are moved together: their parents are looked through once for all of them.
const DIRECTORIES: usize = 1 << 16;

/// Names of files with several that are kept until all names of these are known.
const KEPT_NAMES: usize = 2_000_000;

/// Gives all inodes in what goes new numbers; `moved` is told of each.
pub(super) fn move_out(
    volume: &Volume,
    size: Size,
    tail: &TailInodes,
    moved: &mut dyn FnMut(),
) -> Result<(), Error> {
    let mut scan = Scan { volume, size, tail, moved };
    while scan.move_directories()? == DIRECTORIES {}
    while !scan.move_files()? {}
    for (_, file) in quota_fields(volume) {
        if volume.geometry().valid_inode(file) && tail.contains(volume.geometry(), file) {
            scan.renumber(file, &[])?;
        }
    }
    Ok(())
}

struct Scan<'s> {
    volume: &'s Volume,
    size: Size,
    tail: &'s TailInodes,
    moved: &'s mut dyn FnMut(),
}

impl Scan<'_> {
    fn renumber(&mut self, number: InodeNumber, names: &[Parent]) -> Result<InodeNumber, Error> {
        let new = renumber(self.volume, self.size, number, names)?;
        (self.moved)();
        Ok(new)
    }

    /// Moves some of the directories; returns how many.
    fn move_directories(&mut self) -> Result<usize, Error> {
        let (volume, mut count) = (self.volume, 0);
        let mut below: BTreeMap<InodeNumber, Vec<InodeNumber>> = BTreeMap::new();
        self.tail.for_each(volume, |number| {
            if let Some(parent) = parent_of(volume, number)? {
                below.entry(parent).or_default().push(number);
                count += 1;
            }
            let full = count == DIRECTORIES;
            Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        while let Some((parent, children)) = below.pop_first() {
            let mut names =
                self.names_in(parent, |child| children.binary_search(&child).is_ok())?;
            for child in children {
                let names = names.remove(&child).unwrap_or_default();
                let new = self.renumber(child, &names)?;
                // Those in it are found by its new number.
                if let Some(children) = below.remove(&child) {
                    below.insert(new, children);
                }
            }
        }
        Ok(count)
    }

    /// The entries of a directory that lead to inodes that are wanted, by these.
    fn names_in(
        &self,
        directory: InodeNumber,
        wanted: impl Fn(InodeNumber) -> bool,
    ) -> Result<BTreeMap<InodeNumber, Vec<Parent>>, Error> {
        let inode = self.volume.inode(directory).map_err(Error::into_damage)?;
        let mut names: BTreeMap<_, Vec<_>> = BTreeMap::new();
        ops::entries(self.volume, &inode.read(), Position::START, |entry| {
            if wanted(entry.inode) {
                let name = entry.name.to_vec();
                names.entry(entry.inode).or_default().push(Parent { directory, name });
            }
            true
        })?;
        Ok(names)
    }

    /// Moves the files; `false` if there were too many names to keep, and another scan is needed.
    fn move_files(&mut self) -> Result<bool, Error> {
        let mut kept = KeptNames::default();
        for ag in (0..self.size.groups).map(AgNumber) {
            let seen = for_each_from(self.volume, ag, AgInode(0), &mut |number| {
                let is_in_tail = self.tail.contains(self.volume.geometry(), number);
                if !is_in_tail && parent_of(self.volume, number)?.is_some() {
                    self.move_files_in(number, &mut kept)?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
            debug_assert!(seen.is_continue(), "a scan sees all");
        }
        let KeptNames { names, limit, .. } = kept;
        for (number, names) in names {
            self.renumber(number, &names)?;
        }
        Ok(limit.is_none())
    }

    /// Moves the files with a single name in a directory, and keeps names of others.
    fn move_files_in(&mut self, directory: InodeNumber, kept: &mut KeptNames) -> Result<(), Error> {
        let geometry = self.volume.geometry();
        let names = self.names_in(directory, |child| self.tail.contains(geometry, child))?;
        for (number, names) in names {
            let inode = self.volume.inode(number).map_err(Error::into_damage)?;
            let links = inode.read().core.nlink;
            drop(inode);
            if links as usize == names.len() {
                self.renumber(number, &names)?;
            } else {
                kept.add(number, names);
            }
        }
        Ok(())
    }
}

/// Names of files with several, as many as can be kept.
#[derive(Debug, Default)]
struct KeptNames {
    names: BTreeMap<InodeNumber, Vec<Parent>>,
    count: usize,
    /// Files from this one on are left to the next scan.
    limit: Option<InodeNumber>,
}

impl KeptNames {
    fn add(&mut self, number: InodeNumber, names: Vec<Parent>) {
        if self.limit.is_some_and(|limit| number >= limit) {
            return;
        }
        self.count += names.len();
        self.names.entry(number).or_default().extend(names);
        // All names of one file are kept, however many.
        while self.count > KEPT_NAMES && self.names.len() > 1 {
            let Some((number, names)) = self.names.pop_last() else { break };
            self.count -= names.len();
            self.limit = Some(number);
        }
    }
}

/// The parent of an inode that is a directory.
fn parent_of(volume: &Volume, number: InodeNumber) -> Result<Option<InodeNumber>, Error> {
    let inode = volume.inode(number)?;
    let inode = inode.read();
    if inode.file_type() != FileType::Directory {
        return Ok(None);
    }
    dir::parent(&mut ForkReader::new(volume, &inode, ForkKind::Data)).map(Some)
}
