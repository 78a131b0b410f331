//! Directories of the present volume, and their paths.

use rustc_hash::FxHashMap;
use undercroft_block::read_buffer;
use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{FileType, ForkFormat, InodeCore};

use crate::directory::{self, Entries};
use crate::disk::Disk;
use crate::map;
use crate::present::decode;
use crate::trail::MapFork;

/// Directories on one path at most: names of the kernel's longest path have as many.
pub(crate) const DEEPEST: usize = 4096;

/// Entries of a directory at most that are looked through for the name of a child.
const MOST_BLOCKS: usize = 1 << 16;

/// The names of directories that are there, looked up once.
pub(crate) struct LivePaths<'d> {
    disk: &'d Disk,
    known: FxHashMap<InodeNumber, Option<Vec<Vec<u8>>>>,
}

impl<'d> LivePaths<'d> {
    pub(crate) fn new(disk: &'d Disk) -> Self {
        let root = (disk.geometry.root_inode, Some(Vec::new()));
        Self { disk, known: FxHashMap::from_iter([root]) }
    }

    /// The names from the root down to a directory; `None` if it is none, or hangs nowhere.
    pub(crate) fn of(&mut self, directory: InodeNumber) -> Option<Vec<Vec<u8>>> {
        let mut way = Vec::new();
        let mut at = directory;
        let base = loop {
            if let Some(known) = self.known.get(&at) {
                break known.clone();
            }
            if way.len() >= DEEPEST || way.contains(&at) {
                break None;
            }
            way.push(at);
            match entries(self.disk, at, |_| true).and_then(|entries| entries.parent) {
                Some(parent) => at = parent,
                None => break None,
            }
        };
        let mut path = base;
        let mut parent = at;
        while let Some(child) = way.pop() {
            path = path.and_then(|mut path| {
                path.push(name_in(self.disk, parent, child)?);
                Some(path)
            });
            self.known.insert(child, path.clone());
            parent = child;
        }
        path
    }
}

/// The name that a directory has for a child.
fn name_in(disk: &Disk, directory: InodeNumber, child: InodeNumber) -> Option<Vec<u8>> {
    let mut name = None;
    entries(disk, directory, |found| {
        let mut entries = found.entries.iter().filter(|entry| !entry.is_removed);
        name = entries.find(|entry| entry.inode == child).map(|entry| entry.name.clone());
        name.is_none()
    })?;
    name
}

/// Hands over the entries of a directory, block by block, until `goes_on` refuses; returns the first
/// of them. `None` if it is no directory that can be read.
pub(crate) fn entries(
    disk: &Disk,
    number: InodeNumber,
    mut goes_on: impl FnMut(&Entries) -> bool,
) -> Option<Entries> {
    let bytes = disk.inode(number).ok()??;
    let core = decode(disk, number, &bytes)?;
    if core.file_type() != Some(FileType::Directory) {
        return None;
    }
    let fork = bytes.get(core.data_fork(&disk.geometry))?;
    if core.data_format == ForkFormat::Local {
        let size = usize::try_from(core.size).ok()?.min(fork.len());
        let found = directory::of_shortform(&disk.geometry, &fork[..size])?;
        goes_on(&found);
        return Some(found);
    }
    of_blocks(disk, number, &core, fork, goes_on)
}

fn of_blocks(
    disk: &Disk,
    number: InodeNumber,
    core: &InodeCore,
    fork: &[u8],
    mut goes_on: impl FnMut(&Entries) -> bool,
) -> Option<Entries> {
    let geometry = &disk.geometry;
    let map = map::of_fork(disk, number, MapFork::data(core, fork))?;
    let unit = geometry.dir_block_blocks() as usize;
    let end = geometry.dir_leaf_block().0;
    let data = map.extents.iter().filter(|extent| extent.offset.0 < end);
    let mut first = None;
    let starts = data.flat_map(|extent| {
        let starts = (0..extent.len).step_by(unit);
        starts.map(move |block| extent.start.0 + u64::from(block))
    });
    for start in starts.take(MOST_BLOCKS) {
        let sector = geometry.sector(undercroft_xfs_format::units::FsBlock(start));
        let bytes = geometry.dir_block_size();
        let Ok(block) = read_buffer(disk.present.as_ref(), sector, bytes) else { continue };
        let Some(kind) = directory::kind(geometry, &block) else { continue };
        if !directory::is_sound(geometry, &block, kind, sector.0) {
            continue;
        }
        let found = directory::of_block(geometry, &block, kind);
        let more = goes_on(&found);
        first.get_or_insert(found);
        if !more {
            break;
        }
    }
    first
}
