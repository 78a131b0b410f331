//! Blocks of directories and of attributes: wherever the scan found them, if they are their owner's.

use rustc_hash::{FxHashMap, FxHashSet};
use undercroft_xfs_format::units::{FileBlock, FsBlock, InodeNumber};
use undercroft_xfs_format::{
    AttrLeafLayout, AttrValue, BufferKind, Extent, FileType, Namespace, attr_remote_part,
    attr_remote_payload, verify_attr_leaf, verify_attr_remote,
};

use super::groups::Groups;
use super::index::Index;
use super::inodes::Inodes;
use super::links::Link;
use crate::attributes;
use crate::content::Content;
use crate::directory;
use crate::disk::Disk;
use crate::names;
use crate::scan::BlockTrace;
use crate::stream::read_in_order;

/// Extents of attribute forks that are looked through for a block.
const MOST_ATTR_EXTENTS: usize = 4096;

/// Bytes of values of attributes that are kept: names of values can name the same blocks again and again.
const MOST_VALUES: usize = 256 << 20;

/// What blocks say of directories.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Names in blocks of directories and of attributes.
    pub(super) links: Vec<Link>,
    /// Directories of which every block was found: what they do not have is not in them.
    pub(super) whole: FxHashSet<u64>,
    /// Parents that the first blocks of directories name.
    pub(super) parents: FxHashMap<u64, InodeNumber>,
    /// Bytes of values in blocks of their own.
    values: usize,
    /// Such values that were left out.
    pub(super) left_out: u64,
}

impl Blocks {
    pub(super) fn read(disk: &Disk, index: &Index, groups: &Groups, inodes: &mut Inodes) -> Self {
        let mut blocks = Self::default();
        let mut found: FxHashMap<u64, u64> = FxHashMap::default();
        let is_data = |kind| matches!(kind, BufferKind::DirBlock | BufferKind::DirData);
        let size = disk.geometry.dir_block_size();
        read_each(disk, index.of_kind(is_data), size, |trace, block| {
            if is_current(disk, groups, inodes, trace) && blocks.directory(disk, trace, block) {
                *found.entry(trace.owner).or_default() += 1;
            }
        });
        blocks.find_whole(disk, inodes, &found);
        let leaves = index.of_kind(|kind| kind == BufferKind::AttrLeaf);
        read_each(disk, leaves, disk.geometry.block_size(), |trace, block| {
            blocks.attributes(disk, groups, inodes, (trace, block));
        });
        blocks
    }

    /// Takes the entries of a block; whether it is sound.
    fn directory(&mut self, disk: &Disk, trace: &BlockTrace, block: &[u8]) -> bool {
        let geometry = &disk.geometry;
        // Where nothing but the block itself says its kind, it was not looked at before.
        let Some(kind) = directory::kind(geometry, block) else { return false };
        if !directory::is_sound(geometry, block, kind, trace.sector) {
            return false;
        }
        let owner = InodeNumber(trace.owner);
        let found = directory::of_block(geometry, block, kind);
        if let Some(parent) = found.parent {
            self.parents.insert(trace.owner, parent);
        }
        let entries = found.entries.into_iter().filter(|entry| !entry.is_removed);
        self.links.extend(entries.map(|entry| Link::entry(owner, entry)));
        true
    }

    /// Finds the directories of which no block is missing.
    fn find_whole(&mut self, disk: &Disk, inodes: &Inodes, found: &FxHashMap<u64, u64>) {
        let end = disk.geometry.dir_leaf_block().0;
        let unit = u64::from(disk.geometry.dir_block_blocks());
        for (file, about) in inodes.files.iter().zip(&inodes.about) {
            if file.kind != Some(FileType::Directory) || file.is_guessed {
                continue;
            }
            let number = file.id.number.0;
            let is_whole = match &file.content {
                Content::Map(map) => {
                    let data = map.extents.iter().filter(|extent| extent.offset.0 < end);
                    let blocks: u64 = data.map(|extent| u64::from(extent.len)).sum();
                    map.missing.is_empty()
                        && found.get(&number).copied().unwrap_or(0) == blocks / unit
                }
                // Its entries were inside its inode.
                _ => about.parent.is_some(),
            };
            if is_whole {
                self.whole.insert(number);
            }
        }
    }

    /// The attributes of a leaf under their full names, but for parents.
    fn values(&mut self, disk: &Disk, leaf: &[u8], extents: &[Extent]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let layout = AttrLeafLayout::new(&disk.geometry);
        let entries = layout.entries(leaf).filter(|entry| !entry.incomplete());
        let entries = entries.filter(|entry| entry.namespace() != Namespace::Parent);
        let entries = entries.filter_map(|entry| {
            let value = match entry.value {
                AttrValue::Local(value) => value.to_vec(),
                AttrValue::Remote { .. } if self.values > MOST_VALUES => {
                    self.left_out += 1;
                    return None;
                }
                AttrValue::Remote { block, len } => remote(disk, extents, block, len)?,
            };
            self.values += value.len();
            attributes::named(entry.namespace(), entry.name, &value)
        });
        entries.collect()
    }

    /// Takes the names and the attributes of a leaf.
    fn attributes(
        &mut self,
        disk: &Disk,
        groups: &Groups,
        inodes: &mut Inodes,
        (trace, block): (&BlockTrace, &[u8]),
    ) {
        let geometry = &disk.geometry;
        let owner = InodeNumber(trace.owner);
        let Some(at) = disk.block_at(trace.sector) else { return };
        let extents = inodes.attributes.get(&trace.owner).map(Vec::as_slice);
        let is_own = match (extents, inodes.index(owner)) {
            (Some(extents), _) => extents.iter().take(MOST_ATTR_EXTENTS).any(|extent| {
                at.0.checked_sub(extent.start.0).is_some_and(|ahead| ahead < extent.len.into())
            }),
            (None, Some(_)) => false,
            (None, None) => is_of_lost(disk, groups, inodes, trace, at),
        };
        let is_sound = directory::is_sound(geometry, block, trace.kind, trace.sector)
            && verify_attr_leaf(block, geometry).is_ok();
        if !is_own || !is_sound {
            return;
        }
        let names = names::of_leaf(geometry, block);
        self.links.extend(names.into_iter().map(|name| Link::pointer(owner, name)));
        let found = self.values(disk, block, extents.unwrap_or(&[]));
        if let Some(index) = inodes.index(owner) {
            let attributes = &mut inodes.files[index].attributes;
            attributes.extend(found);
            attributes.sort();
            attributes.dedup_by(|one, other| one.0 == other.0);
        }
    }
}

/// Reads blocks of one size in the order of the index.
fn read_each<'t>(
    disk: &Disk,
    traces: impl Iterator<Item = &'t BlockTrace> + Clone,
    size: usize,
    mut visit: impl FnMut(&BlockTrace, &[u8]),
) {
    let unit = size as u64 / 512;
    let ranges = traces.clone().map(|trace| trace.sector..trace.sector + unit);
    let mut traces = traces;
    // Each range is one piece, also where it cannot be read.
    read_in_order(&disk.present, ranges, unit, |_, block| {
        if let (Some(trace), Ok(block)) = (traces.next(), block) {
            visit(trace, block);
        }
    });
}

/// Whether a block of a directory is its owner's now, as far as anything tells.
fn is_current(disk: &Disk, groups: &Groups, inodes: &Inodes, trace: &BlockTrace) -> bool {
    let owner = InodeNumber(trace.owner);
    let Some(block) = disk.block_at(trace.sector) else { return false };
    let Some(index) = inodes.index(owner) else {
        return is_of_lost(disk, groups, inodes, trace, block);
    };
    match (&inodes.files[index].content, inodes.files[index].kind) {
        (Content::Map(map), Some(FileType::Directory)) => {
            let may_be_missing = !map.missing.is_empty() && groups.may_own(disk, owner.0, block);
            may_be_missing || inodes.directories.has(owner, block.0)
        }
        _ => false,
    }
}

/// Whether a block belongs to an inode that is lost, not to one that was removed.
fn is_of_lost(
    disk: &Disk,
    groups: &Groups,
    inodes: &Inodes,
    trace: &BlockTrace,
    block: FsBlock,
) -> bool {
    let owner = InodeNumber(trace.owner);
    disk.geometry.valid_inode(owner)
        && !inodes.is_sound(owner)
        && groups.in_use(disk, owner) != Some(false)
        && groups.may_own(disk, owner.0, block)
}

/// A value in blocks of its own.
fn remote(disk: &Disk, extents: &[Extent], first: FileBlock, len: u32) -> Option<Vec<u8>> {
    let geometry = &disk.geometry;
    let len = usize::try_from(len).ok()?;
    let mut value = Vec::new();
    let part = attr_remote_payload(geometry);
    for block in (first.0..).take(len.div_ceil(part).min(1 << 8)) {
        let extent = extents
            .iter()
            .take(MOST_ATTR_EXTENTS)
            .find(|extent| extent.offset.0 <= block && block < extent.end().0)?;
        let at = FsBlock(extent.start.0 + (block - extent.offset.0));
        let bytes = disk.blocks(at, 1).ok()?;
        let sector = geometry.sector(at).0;
        let is_sound = directory::is_sound(geometry, &bytes, BufferKind::AttrRemote, sector);
        if !is_sound || verify_attr_remote(&bytes, geometry).is_err() {
            return None;
        }
        value.extend_from_slice(attr_remote_part(&bytes, geometry, value.len(), len).ok()?);
    }
    (value.len() == len).then_some(value)
}
