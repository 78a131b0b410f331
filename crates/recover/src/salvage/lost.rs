//! Inodes that are gone, of which others still speak: directories of their names, the trees of owners of
//! their blocks.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use undercroft_block::{Sector, read_buffer};
use undercroft_xfs_format::units::{FileBlock, FsBlock, InodeNumber};
use undercroft_xfs_format::{
    BufferKind, EntryType, Extent, FileType, RmapFlags, Timestamp, TreeKind,
};

use super::groups::{Groups, Owned};
use super::index::Index;
use super::inodes::{About, Inodes};
use super::links::Link;
use crate::content::Content;
use crate::directory;
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::found::{FoundFile, SizeFrom, State};
use crate::map::Map;
use crate::trees::records_of_leaf;

/// Blocks of the longest extent of a map.
const LONGEST: u64 = (1 << 21) - 1;

/// Adds the inodes that are lost; returns how many.
pub(super) fn add(disk: &Disk, groups: &Groups, inodes: &mut Inodes, links: &[Link]) -> u64 {
    let mut kinds: BTreeMap<InodeNumber, Option<FileType>> = BTreeMap::new();
    for link in links {
        if is_lost(disk, groups, inodes, link.child) {
            let kind = kinds.entry(link.child).or_default();
            *kind = kind.or(link.kind().and_then(EntryType::file_type));
        }
        if is_lost(disk, groups, inodes, link.parent) {
            kinds.insert(link.parent, Some(FileType::Directory));
        }
    }
    for owned in groups.owners() {
        if let Some(number) = owned.owner.as_inode()
            && is_lost(disk, groups, inodes, number)
        {
            kinds.entry(number).or_default();
        }
    }
    let mut maps = maps(groups, |number| kinds.contains_key(&number));
    let count = kinds.len() as u64;
    for (number, kind) in kinds {
        let map = maps.remove(&number).map(|extents| of_extents(disk, extents));
        let in_use = groups.in_use(disk, number);
        inodes.push(
            About { in_use, is_of_journal: false, parent: None },
            file(disk, number, kind, map),
        );
    }
    count
}

fn is_lost(disk: &Disk, groups: &Groups, inodes: &Inodes, number: InodeNumber) -> bool {
    inodes.index(number).is_none()
        && !inodes.is_sound(number)
        && disk.geometry.valid_inode(number)
        && groups.in_use(disk, number) != Some(false)
}

fn file(disk: &Disk, number: InodeNumber, kind: Option<FileType>, map: Option<Map>) -> FoundFile {
    let kind = kind.or_else(|| kind_of(disk, map.as_ref()?));
    let map = map.filter(|map| kind == Some(FileType::Regular) && !map.extents.is_empty());
    FoundFile {
        id: FileId { number, generation: 0 },
        kind,
        paths: Vec::new(),
        size: map.as_ref().map_or(0, |map| map.end() << disk.geometry.block_log),
        size_from: SizeFrom::Blocks,
        removed_at: None,
        uid: 0,
        gid: 0,
        mode: None,
        mtime: Timestamp::default(),
        attributes: Vec::new(),
        state: State::Lost,
        losses: Vec::new(),
        content: map.map_or(Content::None, Content::Map),
        names: Vec::new(),
        vacated: 0,
        last_seen: 0,
        links: 0,
        is_reflinked: true,
        crtime: Timestamp::default(),
        ctime: Timestamp::default(),
        is_guessed: true,
    }
}

/// What a file is, by its first block.
fn kind_of(disk: &Disk, map: &Map) -> Option<FileType> {
    let block = disk.blocks(map.extents.first()?.start, 1).ok()?;
    let kind = directory::kind(&disk.geometry, &block);
    Some(match kind {
        Some(_) => FileType::Directory,
        None if block.starts_with(b"XSLM") => FileType::Symlink,
        None => FileType::Regular,
    })
}

/// The extents of data that the trees of owners say of files.
fn maps(
    groups: &Groups,
    is_wanted: impl Fn(InodeNumber) -> bool,
) -> FxHashMap<InodeNumber, Vec<Extent>> {
    let mut maps: FxHashMap<InodeNumber, Vec<Extent>> = FxHashMap::default();
    for owned in groups.owners() {
        let is_data = !owned.flags.intersects(RmapFlags::ATTR_FORK | RmapFlags::BMBT_BLOCK);
        if let Some(number) = owned.owner.as_inode().filter(|number| is_data && is_wanted(*number))
        {
            maps.entry(number).or_default().extend(extents(owned));
        }
    }
    maps
}

/// A range of blocks as extents of its owner.
fn extents(owned: &Owned) -> impl Iterator<Item = Extent> {
    let Owned { blocks, offset, flags, .. } = owned.clone();
    let start = blocks.start;
    blocks.clone().step_by(LONGEST as usize).map(move |at| Extent {
        offset: FileBlock(offset + (at - start)),
        start: FsBlock(at),
        len: LONGEST.min(blocks.end - at) as u32,
        unwritten: flags.contains(RmapFlags::UNWRITTEN),
    })
}

fn of_extents(disk: &Disk, mut extents: Vec<Extent>) -> Map {
    extents.sort_unstable_by_key(|extent| extent.offset.0);
    let mut map = Map::default();
    for extent in extents {
        map.push(disk, extent);
    }
    map
}

/// Fills the gaps of maps: by leaves that the scan found, then by the trees of owners. Where all owners
/// are known, a gap that is left is a hole.
pub(super) fn fill(disk: &Disk, index: &Index, groups: &Groups, inodes: &mut Inodes) {
    let has_gaps = |file: &FoundFile| match &file.content {
        Content::Map(map) => !map.missing.is_empty(),
        _ => false,
    };
    let gaps = inodes.files.iter().enumerate().filter(|(_, file)| has_gaps(file));
    let wanted: FxHashMap<InodeNumber, usize> =
        gaps.map(|(place, file)| (file.id.number, place)).collect();
    if wanted.is_empty() {
        return;
    }
    let mut leaves: Vec<_> = index
        .of_kind(|kind| kind == BufferKind::Tree(TreeKind::Bmbt))
        .filter(|trace| wanted.contains_key(&InodeNumber(trace.owner)))
        .collect();
    leaves.sort_by_key(|trace| std::cmp::Reverse(trace.lsn));
    for trace in leaves {
        let sector = Sector(trace.sector);
        let is_own = |block| groups.may_own(disk, trace.owner, block);
        if !disk.block_at(trace.sector).is_some_and(is_own) {
            continue;
        }
        let block = read_buffer(disk.present.as_ref(), sector, disk.geometry.block_size());
        let Ok(block) = block else { continue };
        let records = records_of_leaf(&disk.geometry, &block, TreeKind::Bmbt, sector);
        let extents: Vec<_> = records.into_iter().flatten().map(Extent::decode).collect();
        let place = wanted[&InodeNumber(trace.owner)];
        if let Content::Map(map) = &mut inodes.files[place].content {
            map.fill(disk, &extents);
        }
    }
    let told = maps(groups, |number| wanted.contains_key(&number));
    for (number, extents) in told {
        if let Content::Map(map) = &mut inodes.files[wanted[&number]].content {
            let parts = cut(&extents, &map.missing);
            map.fill(disk, &parts);
        }
    }
    for place in wanted.into_values() {
        if let Content::Map(map) = &mut inodes.files[place].content {
            map.settle();
            if groups.know_all_owners(disk) {
                map.missing.clear();
            }
        }
    }
}

/// The parts of extents that lie in ranges of the file, which ascend.
fn cut(extents: &[Extent], ranges: &[std::ops::Range<u64>]) -> Vec<Extent> {
    let mut parts = Vec::new();
    for extent in extents {
        let first = ranges.partition_point(|range| range.end <= extent.offset.0);
        for range in ranges[first..].iter().take_while(|range| range.start < extent.end().0) {
            let start = range.start.max(extent.offset.0);
            let end = range.end.min(extent.end().0);
            parts.push(Extent {
                offset: FileBlock(start),
                start: FsBlock(extent.start.0 + (start - extent.offset.0)),
                len: (end - start) as u32,
                unwritten: extent.unwritten,
            });
        }
    }
    parts
}
