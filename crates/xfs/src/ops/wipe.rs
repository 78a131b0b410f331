//! Files removed with what they leave: data, names and attributes are overwritten.
//!
//! A file goes as any other. Then its blocks, which are free, are overwritten, and the free regions of the
//! directories that it was in; the area of the forks of its inode is empty when that goes to its place. A
//! block that another file shares is not free, and stays. The journal keeps what it has.

use super::locks::{self, Locked};
use super::{Position, entries, rmdir, unlink};
use crate::bmap::{self, ForkWriter};
use crate::dir;
use crate::error::Error;
use crate::format::{FileType, Timestamp};
use crate::inode::{ForkKind, InodeState, LiteralArea};
use crate::units::{FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;
use std::collections::BTreeSet;
use std::ops::Range;
use undercroft_block::{flush, write_zeroes_at};

/// Ranges of blocks that are remembered; with more they are overwritten at once.
const MOST_RANGES: usize = 1 << 18;

/// A removal of files with what they leave.
#[derive(Debug)]
pub struct Wiping<'v> {
    volume: &'v Volume,
    /// Blocks that the files had, and their directories before.
    blocks: Vec<Range<FsBlock>>,
    /// Directories that names were taken from.
    directories: BTreeSet<InodeNumber>,
}

impl<'v> Wiping<'v> {
    /// A removal of nothing yet.
    #[must_use]
    pub const fn new(volume: &'v Volume) -> Self {
        Self { volume, blocks: Vec::new(), directories: BTreeSet::new() }
    }

    /// Removes `name`, a file or an empty directory, from the directory `parent`.
    ///
    /// # Errors
    /// As [`unlink`] and [`rmdir`].
    pub fn remove(
        &mut self,
        parent: InodeNumber,
        name: &[u8],
        now: Timestamp,
    ) -> Result<(), Error> {
        let directory = self.volume.inode(parent)?;
        let number = locks::entry(self.volume, &directory.read(), name)?;
        if self.directories.insert(parent) {
            self.note(&directory.read())?;
        }
        // It stays in memory until it is free, with the mark.
        let inode = self.volume.inode(number)?;
        let is_directory = inode.read().file_type() == FileType::Directory;
        if is_directory || inode.read().core.nlink == 1 {
            self.note(&inode.read())?;
            let len = self.volume.geometry().literal_size();
            inode.write().memory.literal = Some(LiteralArea::wiped(len));
        }
        if is_directory {
            rmdir(self.volume, parent, name, now)?;
        } else {
            unlink(self.volume, parent, name, now)?;
        }
        if self.blocks.len() > MOST_RANGES { self.wipe_blocks() } else { Ok(()) }
    }

    /// Removes `name` from the directory `parent`; a directory with all that is in it, from its leaves.
    ///
    /// # Errors
    /// As [`remove`](Self::remove). What was removed before is removed.
    pub fn remove_all(
        &mut self,
        parent: InodeNumber,
        name: &[u8],
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut way = vec![(parent, name.to_vec())];
        while let Some((parent, name)) = way.last() {
            let directory = self.volume.inode(*parent)?;
            let number = locks::entry(self.volume, &directory.read(), name)?;
            let below = names_in(self.volume, number)?;
            if below.is_empty() {
                let (parent, name) = (*parent, name.clone());
                way.pop();
                self.remove(parent, &name, now)?;
            } else {
                way.extend(below.into_iter().map(|name| (number, name)));
            }
        }
        Ok(())
    }

    /// Overwrites what is left to be overwritten. What was removed before an error is removed.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub fn finish(mut self) -> Result<(), Error> {
        for directory in std::mem::take(&mut self.directories) {
            match self.wipe_names(directory) {
                // It was removed itself.
                Err(Error::Stale { .. }) => {}
                done => done?,
            }
        }
        self.wipe_blocks()
    }

    /// Remembers the blocks of an inode, and its own.
    fn note(&mut self, inode: &InodeState) -> Result<(), Error> {
        let (volume, geometry) = (self.volume, self.volume.geometry());
        for kind in [ForkKind::Data, ForkKind::Attr] {
            let extents = bmap::extents(volume, inode, kind)?.as_slice();
            self.blocks.extend(extents.iter().map(|it| range(it.start, it.len)));
            let tree = bmap::tree_block_list(volume, inode, kind)?;
            self.blocks.extend(tree.into_iter().map(|block| range(block, 1)));
        }
        // It is given back with the last inode in it.
        let (ag, agino) = geometry.split_inode(inode.number);
        self.blocks.push(range(geometry.fs_block(ag, geometry.inode_block(agino).0), 1));
        Ok(())
    }

    /// Overwrites the names that a directory had.
    fn wipe_names(&self, directory: InodeNumber) -> Result<(), Error> {
        let mut from = Some(FileBlock(0));
        while let Some(place) = from {
            let mut trans = self.volume.begin()?;
            let mut inodes = Locked::new(self.volume, &[directory])?;
            let inode = inodes.get(directory);
            inode.expect_in_use()?;
            from = dir::wipe_names(&mut ForkWriter::new(&mut trans, inode, ForkKind::Data), place)?;
            trans.commit(&mut [])?;
        }
        Ok(())
    }

    /// Overwrites those of the blocks that are free now. They are given to no one meanwhile.
    fn wipe_blocks(&mut self) -> Result<(), Error> {
        let volume = self.volume;
        let parts = volume.spare_blocks(&std::mem::take(&mut self.blocks))?;
        let device = volume.cache().device();
        let log = volume.geometry().block_log;
        let mut written = parts.iter().try_for_each(|(ag, part)| {
            let sector = volume.geometry().ag_sector(*ag, part.start);
            write_zeroes_at(device.as_ref(), sector, u64::from(part.len) << log)
        });
        if written.is_ok() {
            written = flush(device.as_ref());
        }
        volume.end_sparing(&parts);
        Ok(written?)
    }
}

/// The names in a directory; none of other files.
fn names_in(volume: &Volume, number: InodeNumber) -> Result<Vec<Vec<u8>>, Error> {
    let inode = volume.inode(number)?;
    let inode = inode.read();
    let mut names = Vec::new();
    if inode.file_type() == FileType::Directory {
        entries(volume, &inode, Position::START, |entry| {
            names.push(entry.name.to_vec());
            true
        })?;
    }
    Ok(names)
}

fn range(start: FsBlock, len: u32) -> Range<FsBlock> {
    start..FsBlock(start.0 + u64::from(len))
}
