//! The blocks of a file, from its data fork and from blocks of its tree that are still there.

use std::ops::Range;

use rustc_hash::FxHashSet;
use undercroft_block::is_zero;
use undercroft_xfs_format::units::{FileBlock, FsBlock, InodeNumber};
use undercroft_xfs_format::{
    BmapRoot, Extent, ForkFormat, HeaderLayout, TreeKind, block_capacity, bytes,
};

use crate::disk::Disk;
use crate::trail::MapFork;
use crate::trees::is_tree_block;

/// A map of a file's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// Extents in ascending order, none over another.
    pub extents: Vec<Extent>,
    /// Ranges of the file of which the tree's blocks are gone.
    pub missing: Vec<Range<u64>>,
    /// Blocks of the tree.
    pub tree: Vec<FsBlock>,
}

impl Map {
    /// The block of the file behind the last extent.
    pub(crate) fn end(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.end().0)
    }

    /// Adds extents that may go on behind what is there.
    pub(crate) fn push(&mut self, disk: &Disk, extent: Extent) -> bool {
        let fits = extent.validate().is_ok()
            && extent.offset.0 >= self.end()
            && disk.geometry.valid_extent(extent.start, extent.len.into());
        if fits {
            self.extents.push(extent);
        }
        fits
    }
}

/// The blocks of an extent.
pub(crate) fn blocks(extent: &Extent) -> Range<u64> {
    extent.start.0..extent.start.0 + u64::from(extent.len)
}

/// The map that a fork says; `None` if it says none.
pub(crate) fn of_fork(disk: &Disk, file: InodeNumber, fork: MapFork<'_>) -> Option<Map> {
    match fork.format {
        ForkFormat::Extents => {
            let count = usize::try_from(fork.extents).ok()?;
            let records = fork.bytes.chunks_exact(Extent::LEN);
            let extents = Vec::with_capacity(count.min(records.len()));
            let mut map = Map { extents, ..Map::default() };
            let all = records.take(count).all(|record| map.push(disk, Extent::decode(record)));
            (all && map.extents.len() == count).then_some(map)
        }
        ForkFormat::Btree => of_root(disk, file, fork.bytes),
        ForkFormat::Dev | ForkFormat::Local | ForkFormat::Uuid | ForkFormat::MetaBtree => None,
    }
}

/// The map that the area of the forks of a free inode seems to hold: extents as far as they can be
/// some, or the root of a tree.
pub(crate) fn of_literal(disk: &Disk, file: InodeNumber, bytes: &[u8]) -> Option<Map> {
    let mut map = Map::default();
    for record in bytes.chunks_exact(Extent::LEN) {
        if is_zero(record) || !map.push(disk, Extent::decode(record)) {
            break;
        }
    }
    if !map.extents.is_empty() {
        return Some(map);
    }
    of_root(disk, file, bytes).filter(|map| !map.extents.is_empty())
}

/// The map below the root of a tree, as far as its blocks are there.
fn of_root(disk: &Disk, file: InodeNumber, fork: &[u8]) -> Option<Map> {
    let root = BmapRoot::decode(fork).ok()?;
    let mut tree = Tree { disk, file, map: Map::default(), met: FxHashSet::default() };
    let entries: Vec<_> = root.entries().collect();
    tree.entries(&entries, root.level() - 1, u64::MAX);
    Some(tree.map)
}

/// A tree of extents on its way into a map.
struct Tree<'d> {
    disk: &'d Disk,
    file: InodeNumber,
    map: Map,
    /// Blocks met, each once: a damaged tree may point in circles.
    met: FxHashSet<FsBlock>,
}

impl Tree<'_> {
    /// Reads the blocks below a node, which belong to file blocks before `end`.
    fn entries(&mut self, entries: &[(FileBlock, FsBlock)], level: u16, end: u64) {
        for (index, (key, block)) in entries.iter().enumerate() {
            let next = entries.get(index + 1).map_or(end, |(key, _)| key.0);
            if !self.block(*block, level, next) {
                self.map.missing.push(key.0..next);
            }
        }
    }

    /// Reads a block and what is below it; whether it is one of the file's tree.
    fn block(&mut self, block: FsBlock, level: u16, end: u64) -> bool {
        let geometry = &self.disk.geometry;
        if !geometry.valid_extent(block, 1) || !self.met.insert(block) {
            return false;
        }
        let Ok(bytes) = self.disk.blocks(block, 1) else { return false };
        let sector = geometry.sector(block);
        if is_tree_block(geometry, &bytes, TreeKind::Bmbt, level, sector).is_err() {
            return false;
        }
        let layout = HeaderLayout::new(TreeKind::Bmbt, geometry.features.crc);
        if layout.owner(&bytes).is_some_and(|owner| owner != self.file.0) {
            return false;
        }
        self.map.tree.push(block);
        let count = usize::from(HeaderLayout::numrecs(&bytes));
        let body = &bytes[layout.header_len()..];
        if level == 0 {
            let records = body.chunks_exact(Extent::LEN).take(count).map(Extent::decode);
            let (disk, before) = (self.disk, self.map.extents.len());
            let is_sound = records.into_iter().all(|extent| self.map.push(disk, extent));
            if !is_sound {
                self.map.extents.truncate(before);
            }
            return is_sound;
        }
        let (_, max) = block_capacity(TreeKind::Bmbt, layout, geometry.block_size());
        let entry = |index: usize| {
            let key = FileBlock(bytes::be64(body, 8 * index));
            (key, FsBlock(bytes::be64(body, 8 * (max + index))))
        };
        let entries: Vec<_> = (0..count).map(entry).collect();
        self.entries(&entries, level - 1, end);
        true
    }
}

impl Map {
    /// Adds extents that lie in ranges whose own blocks are gone, where none is yet. The map has to be
    /// [settled](Self::settle) at last.
    pub(crate) fn fill(&mut self, disk: &Disk, extents: &[Extent]) {
        for extent in extents {
            let (start, end) = (extent.offset.0, extent.end().0);
            let place = self.missing.partition_point(|gap| gap.end <= start);
            let gap = self.missing.get(place);
            let Some(gap) = gap.filter(|gap| gap.start <= start && end <= gap.end).cloned() else {
                continue;
            };
            let is_sound = extent.validate().is_ok()
                && disk.geometry.valid_extent(extent.start, extent.len.into());
            if !is_sound {
                continue;
            }
            self.extents.push(*extent);
            let rests = [gap.start..start, end..gap.end];
            self.missing.splice(place..=place, rests.into_iter().filter(|rest| !rest.is_empty()));
        }
    }

    /// Puts what was filled in into its order.
    pub(crate) fn settle(&mut self) {
        self.extents.sort_unstable_by_key(|extent| extent.offset.0);
    }
}
