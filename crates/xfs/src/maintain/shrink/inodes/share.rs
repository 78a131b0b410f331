//! The share of the journal that a new number for an inode takes.

use super::children;
use super::owned::Owned;
use crate::bmap;
use crate::error::Error;
use crate::format::{FileType, ForkFormat};
use crate::inode::{ForkKind, InodeState};
use crate::log::{LogShape, LogSpace, Work};
use crate::ops::Parent;
use crate::units::InodeNumber;
use crate::volume::{LiveOptions, Volume};
use std::collections::BTreeMap;

/// Bytes of the item of an inode besides the inode, with the headers of its parts.
const INODE_ITEM: usize = 4 * 12 + 56 + 8;

/// Bytes of a changed word in a block, with the header of its part.
const PIECE: usize = 128 + 12;

/// Bytes of the item of a buffer with no more than a few changed words.
const BUFFER: usize = 2 * PIECE + 64;

/// Bytes beside the content of a block that is logged whole.
const BLOCK_OVERHEAD: usize = 256;

/// Bytes of the journal that one transaction can have in a volume, whatever it is opened for.
pub(super) fn limit(volume: &Volume) -> usize {
    let sector_bytes = 1 << volume.superblock().log_sector_log;
    let record_bytes = LiveOptions::default().record_bytes;
    LogShape::new(volume.geometry(), sector_bytes, record_bytes).checkpoint_limit()
}

/// Bytes of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share(pub(super) usize);

impl Share {
    /// That of an inode with these names.
    ///
    /// # Errors
    /// It is damaged; the device failed.
    pub(super) fn of(
        volume: &Volume,
        inode: &InodeState,
        owned: &Owned,
        names: &[Parent],
    ) -> Result<Self, Error> {
        let mut parents: BTreeMap<InodeNumber, usize> = BTreeMap::new();
        names.iter().for_each(|name| *parents.entry(name.directory).or_default() += 1);
        let mut bytes = Self::without_names(volume, inode, owned)?.0;
        for (parent, names) in parents {
            let size = volume.lock_inode(parent)?.core.size;
            bytes += Self::of_names(volume, names, usize::try_from(size).unwrap_or(usize::MAX));
        }
        Ok(Self(bytes))
    }

    /// That of an inode, without its names.
    ///
    /// # Errors
    /// It is damaged; the device failed.
    pub(super) fn without_names(
        volume: &Volume,
        inode: &InodeState,
        owned: &Owned,
    ) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let (block, item) = (geometry.block_size(), INODE_ITEM + geometry.inode_size());
        // An inode made, another freed.
        let base = LogSpace::new(geometry, limit(volume)).of(Work::Rename);
        let mut bytes = base + 4 * item + owned.logged() * BUFFER + owned.values.len() * 2 * BUFFER;
        let (mut extents, mut tree_blocks) = (owned.values.len() * 2, 0);
        for kind in [ForkKind::Data, ForkKind::Attr] {
            extents += bmap::extents(volume, inode, kind)?.len();
            for ag in bmap::groups(volume, inode, kind)? {
                // Waits, so there is a guard.
                let Some(mut guard) = volume.lock_group(*ag, true)? else { continue };
                tree_blocks += guard.state().agf.rmap_blocks as usize + 8;
            }
        }
        // Each extent changes a leaf of the reverse mappings, at most two; and no more than there are.
        let blocks = extents.saturating_mul(4).min(2 * tree_blocks);
        bytes += blocks * (block + BLOCK_OVERHEAD);
        if inode.file_type() == FileType::Directory {
            bytes += Self::of_children(volume, inode)?;
        }
        Ok(Self(bytes))
    }

    /// Bytes of what a directory leads to.
    fn of_children(volume: &Volume, directory: &InodeState) -> Result<usize, Error> {
        let (geometry, mut bytes) = (volume.geometry(), 0);
        // Inodes whose attributes are in blocks: how many names they have here, and these blocks.
        let mut outside: BTreeMap<InodeNumber, (usize, usize)> = BTreeMap::new();
        children::for_each(volume, directory, |child| {
            if let Some((names, _)) = outside.get_mut(&child.inode) {
                *names += 1;
                return Ok(());
            }
            bytes += INODE_ITEM + geometry.inode_size();
            let inode = volume.lock_inode(child.inode).map_err(Error::into_damage)?;
            if inode.attr.as_ref().is_some_and(|attr| attr.format() != ForkFormat::Local) {
                let extents = bmap::extents(volume, &inode, ForkKind::Attr)?.as_slice();
                let blocks = extents.iter().map(|extent| extent.len as usize).sum();
                outside.insert(child.inode, (1, blocks));
            }
            Ok(())
        })?;
        let block = geometry.block_size() + BLOCK_OVERHEAD;
        // A pointer leaves one leaf and comes into another; leaves may be split.
        let changed = outside.values().map(|(names, blocks)| (2 * names).min(blocks * 3 / 2 + 4));
        Ok(bytes + changed.sum::<usize>() * block)
    }

    /// That of so many names in a directory of this size.
    fn of_names(volume: &Volume, names: usize, size: usize) -> usize {
        let item = INODE_ITEM + volume.geometry().inode_size();
        item + (names * (PIECE + BUFFER)).min(size.saturating_add(size / 8) + names.min(1) * BUFFER)
    }
}
