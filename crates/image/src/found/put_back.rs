//! Removed files put back into the volume that they were on, in the blocks that they had.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use undercroft_recover::{Disk, FoundFile, State};
use undercroft_source::{Entry, EntryPath, Exclude, Kind};
use undercroft_xfs::format::{DeviceNumber, Extent, FileType, Timestamp};
use undercroft_xfs::inode::InodeState;
use undercroft_xfs::ops::{self, MetadataChange, NewInode, OldFile, Times};
use undercroft_xfs::units::{FsBlock, InodeNumber};
use undercroft_xfs::{Error, Volume};

use super::{Planned, plan};
use crate::pack::file_type;

/// Removed files on their way back: directories that are gone first, then what was in them. Names that exist
/// again get a number; a file that is back already is left alone.
pub struct PutBack {
    volume: Arc<Volume>,
    files: Arc<[FoundFile]>,
    planned: Vec<Planned>,
    now: Timestamp,
    /// Directories and files that are there, by their paths in the plan.
    places: HashMap<EntryPath, InodeNumber>,
    /// Directories that were made, and when their contents had changed last.
    made: Vec<(InodeNumber, Timestamp)>,
    summary: Summary,
}

/// What was put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links, devices, FIFOs, sockets, further names.
    pub others: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Files that were back already.
    pub there: u64,
    /// Files that could not be put back.
    pub failed: u64,
}

/// What happens on the way.
#[derive(Debug)]
pub enum PutBackEvent<'e> {
    /// So much is back.
    Progress(&'e Summary),
    /// A file is back under another name, as its own exists.
    Renamed {
        /// The path that it had.
        path: &'e [u8],
        /// Its name in the same directory.
        name: &'e [u8],
    },
    /// A file could not be put back.
    Failed {
        /// The path that it had.
        path: &'e [u8],
        /// Why not.
        error: &'e Error,
    },
}

impl PutBack {
    /// Those of `files`, found on `disk`, that `takes` accepts, to be put back on `volume`, which is the
    /// same, open for change. What any of `files` left is kept from being used from here on.
    ///
    /// # Errors
    /// There is no space beside that; a damaged structure; the device failed.
    pub fn new(
        volume: &Arc<Volume>,
        (disk, files): (&Disk, &Arc<[FoundFile]>),
        now: Timestamp,
        takes: impl Fn(&FoundFile) -> bool,
    ) -> Result<Self, Error> {
        let takes = |file: &FoundFile| file.state == State::Whole && takes(file);
        let planned = plan(disk, files, takes, &Exclude::default());
        let mut blocks = Vec::new();
        for file in files.iter().filter(|file| file.state != State::Lost) {
            blocks.extend(file.extents().iter().map(|extent| range(extent.start, extent.len)));
            blocks.extend(file.tree().iter().map(|block| range(*block, 1)));
            blocks.extend(block_of(volume, file.id.number));
        }
        volume.spare(&blocks, files.iter().map(|file| file.id.number))?;
        let root = volume.geometry().root_inode;
        Ok(Self {
            volume: Arc::clone(volume),
            files: Arc::clone(files),
            planned,
            now,
            places: HashMap::from([(EntryPath::root(), root)]),
            made: Vec::new(),
            summary: Summary::default(),
        })
    }

    /// Puts all of them back; `visit` is told of each. One that cannot be is left out.
    ///
    /// # Errors
    /// The volume cannot be changed any more.
    pub fn run(mut self, visit: &mut dyn FnMut(PutBackEvent<'_>)) -> Result<Summary, Error> {
        for planned in std::mem::take(&mut self.planned) {
            let path = planned.entry.path.as_bytes();
            if let Err(error) = self.entry(&planned, visit) {
                self.summary.failed += 1;
                visit(PutBackEvent::Failed { path, error: &error });
                // Whether it still lets itself be changed.
                self.volume.sync()?;
            }
            visit(PutBackEvent::Progress(&self.summary));
        }
        for (number, mtime) in &self.made {
            let change = MetadataChange { modification: Some(*mtime), ..MetadataChange::default() };
            ops::change_metadata(&self.volume, *number, &change, self.now)?;
        }
        self.volume.sync()?;
        Ok(self.summary)
    }

    fn entry(
        &mut self,
        planned: &Planned,
        visit: &mut dyn FnMut(PutBackEvent<'_>),
    ) -> Result<(), Error> {
        let Planned { entry, file } = planned;
        let files = Arc::clone(&self.files);
        let file = file.map(|index| &files[index]);
        let (Some(above), Some((_, name))) = (entry.path.parent(), entry.path.split_last()) else {
            return Ok(());
        };
        let Some(parent) = self.places.get(&above).copied() else {
            return Err(Error::NotFound("its directory, which could not be made".into()));
        };
        let number = match &entry.kind {
            Kind::HardLink(first) => return self.link(first, parent, name),
            _ => self.place(parent, name, entry, file, visit)?,
        };
        self.places.insert(entry.path.clone(), number);
        Ok(())
    }

    /// Makes a file, under its name or the next that is free.
    fn place(
        &mut self,
        parent: InodeNumber,
        name: &[u8],
        entry: &Entry,
        file: Option<&FoundFile>,
        visit: &mut dyn FnMut(PutBackEvent<'_>),
    ) -> Result<InodeNumber, Error> {
        let is_directory = entry.kind == Kind::Directory;
        for free in names(name) {
            let found = ops::lookup(&self.volume, &self.volume.inode(parent)?.read(), &free)?;
            if let Some(found) = found {
                let inode = self.volume.inode(found)?;
                let inode = inode.read();
                if is_directory && inode.file_type() == FileType::Directory {
                    return Ok(found);
                }
                if file.is_some_and(|file| is_back(&inode, file)) {
                    self.summary.there += 1;
                    return Ok(found);
                }
                continue;
            }
            let number = self.make(parent, &free, entry, file)?;
            self.count(entry, file);
            if free != name {
                visit(PutBackEvent::Renamed { path: entry.path.as_bytes(), name: &free });
            }
            if let Some(file) = file.filter(|_| is_directory) {
                self.made.push((number, file.mtime));
            }
            return Ok(number);
        }
        Err(Error::Exists(ops::path_text(name)))
    }

    fn make(
        &self,
        parent: InodeNumber,
        name: &[u8],
        entry: &Entry,
        file: Option<&FoundFile>,
    ) -> Result<InodeNumber, Error> {
        let (target, device) = match &entry.kind {
            Kind::Symlink(target) => (&target[..], DeviceNumber::default()),
            Kind::CharDevice(device) | Kind::BlockDevice(device) => {
                (&[][..], DeviceNumber { major: device.major, minor: device.minor })
            }
            _ => (&[][..], DeviceNumber::default()),
        };
        let size = match entry.kind {
            Kind::Regular { size, .. } => size,
            _ => 0,
        };
        let mtime = file.map_or(self.now, |file| file.mtime);
        let times = Times {
            access: mtime,
            modification: mtime,
            change: self.now,
            creation: file.map_or(self.now, |file| file.crtime),
        };
        let metadata = &entry.metadata;
        let new = NewInode {
            mode: file_type(&entry.kind).mode_bits() | metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            times,
            device,
            target,
        };
        let extents = match (&entry.kind, file) {
            (Kind::Regular { .. }, Some(file)) => self.data(file, size),
            _ => Vec::new(),
        };
        let attributes = file.map_or(&[][..], |file| &file.attributes);
        let old = OldFile { new, size, extents: &extents, attributes };
        ops::put_back(&self.volume, parent, name, &old)
    }

    /// The extents that hold data of a file.
    fn data(&self, file: &FoundFile, size: u64) -> Vec<Extent> {
        let end = self.volume.geometry().blocks_for(size);
        let written = file.extents().iter().filter(|extent| !extent.unwritten);
        let inside = written.filter(|extent| extent.offset.0 < end);
        inside
            .map(|extent| {
                // No more than there are.
                let len = u64::from(extent.len).min(end - extent.offset.0) as u32;
                Extent { len, ..*extent }
            })
            .collect()
    }

    /// Gives a file that is back a further name.
    fn link(&mut self, first: &EntryPath, parent: InodeNumber, name: &[u8]) -> Result<(), Error> {
        let Some(number) = self.places.get(first).copied() else {
            return Err(Error::NotFound("the file, which could not be put back".into()));
        };
        for name in names(name) {
            let found = ops::lookup(&self.volume, &self.volume.inode(parent)?.read(), &name)?;
            match found {
                Some(found) if found == number => return Ok(()),
                Some(_) => {}
                None => {
                    ops::link(&self.volume, number, parent, &name, self.now)?;
                    self.summary.others += 1;
                    return Ok(());
                }
            }
        }
        Err(Error::Exists(ops::path_text(name)))
    }

    fn count(&mut self, entry: &Entry, file: Option<&FoundFile>) {
        match entry.kind {
            Kind::Regular { size, .. } => {
                self.summary.files += 1;
                self.summary.bytes += size;
            }
            // Those on the way are not counted.
            Kind::Directory => self.summary.directories += u64::from(file.is_some()),
            _ => self.summary.others += 1,
        }
    }
}

/// A name, and those that stand for it where it exists.
fn names(name: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    /// More of one name is no accident.
    const MOST: u32 = 1000;
    (0..MOST).map(|number| {
        let mark = if number == 0 { String::new() } else { format!(".{number}") };
        let kept = name.len().min(undercroft_source::entry::MAX_NAME - mark.len());
        [&name[..kept], mark.as_bytes()].concat()
    })
}

/// Whether a file that is there is the removed one, put back before.
fn is_back(inode: &InodeState, file: &FoundFile) -> bool {
    let core = &inode.core;
    let size = match core.file_type() {
        Some(FileType::Regular) => core.size == file.size,
        _ => true,
    };
    size && core.file_type() == file.kind
        && core.crtime == file.crtime
        && core.mtime == file.mtime
        && (core.uid, core.gid) == (file.uid, file.gid)
}

fn range(start: FsBlock, len: u32) -> Range<FsBlock> {
    start..FsBlock(start.0.saturating_add(len.into()))
}

/// The block that an inode is in, or was.
fn block_of(volume: &Volume, number: InodeNumber) -> Option<Range<FsBlock>> {
    let geometry = volume.geometry();
    geometry.valid_inode(number).then(|| {
        let (ag, inode) = geometry.split_inode(number);
        range(geometry.fs_block(ag, geometry.inode_block(inode).0), 1)
    })
}
