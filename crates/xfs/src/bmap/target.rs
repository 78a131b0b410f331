//! Where new space of a file should be.
//!
//! docs/algorithms/file-mapping.md#targets: beside the extents around it in the file, shifted by
//! the logical gap as if the hole were filled later, or behind the one before it for data that was
//! delayed; else where the caller places first extents, else near the inode.

use super::extents;
use crate::error::Error;
use crate::format::Extent;
use crate::geometry::Geometry;
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};

/// A gap of more lengths of the request than this is not kept on disk.
const GAP_LIMIT: u64 = 4;

/// The block a new extent should be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) block: FsBlock,
    /// Nothing of the file lies behind the new extent.
    pub(super) at_end: bool,
    /// The block is behind the last extent of the file, as far as the new one is in the file.
    pub(super) continues: bool,
}

/// The target of `len` new blocks at `offset`; `first` is that of the first extent of a fork, if it
/// is not to be near the inode.
///
/// # Errors
/// The extents could not be read.
pub(super) fn target(
    trans: &Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    (offset, len): (FileBlock, u64),
    first: Option<FsBlock>,
) -> Result<Target, Error> {
    let geometry = trans.geometry();
    let extents = extents(trans.volume(), inode, kind)?;
    let (before, after) = (extents.before(offset), extents.at_or_after(offset));
    let at_end = after.is_none();
    let beside = |block| Target { block, at_end, continues: false };
    if let Some(old) = after.filter(|after| after.offset < offset) {
        // In the middle of an extent: new blocks for a part of it, near the old ones.
        return Ok(beside(FsBlock(old.start.0 + (offset.0 - old.offset.0))));
    }
    let first = first.unwrap_or_else(|| geometry.inode_fs_block(inode.number));
    if is_delayed(inode, kind) {
        // A kernel finds the delayed extent itself at or after the offset: it sees neither what lies
        // behind it nor that nothing does, so a wide gap is lost, and nothing is an append.
        return Ok(beside(before.map_or(first, |before| behind(geometry, before, offset, len).0)));
    }
    Ok(match (before, after) {
        (Some(before), None) => {
            let gap = offset.0 - before.end().0;
            let block = shifted(geometry, before, u64::from(before.len).checked_add(gap))
                .or_else(|| shifted(geometry, before, Some(u64::from(before.len))));
            Target { block: block.unwrap_or(before.start), at_end, continues: block.is_some() }
        }
        (Some(before), Some(after)) => {
            let (left, left_distance) = behind(geometry, before, offset, len);
            let (right, right_distance) = in_front(geometry, after, offset, len);
            beside(if left_distance <= right_distance { left } else { right })
        }
        (None, Some(after)) => beside(in_front(geometry, after, offset, len).0),
        (None, None) => beside(first),
    })
}

/// Whether the data was in memory before it got space. A kernel does not delay where there is a
/// hint.
fn is_delayed(inode: &InodeState, kind: ForkKind) -> bool {
    kind == ForkKind::Data && inode.memory.dirty.is_some() && inode.core.extent_size_hint() == 0
}

/// A block `by` blocks behind the start of an extent, if it lies in the extent's group.
fn shifted(geometry: &Geometry, extent: Extent, by: Option<u64>) -> Option<FsBlock> {
    same_group(geometry, extent, FsBlock(extent.start.0.checked_add(by?)?))
}

fn same_group(geometry: &Geometry, extent: Extent, block: FsBlock) -> Option<FsBlock> {
    let group = geometry.split_block(extent.start).0;
    (geometry.split_block(block).0 == group && geometry.valid_extent(block, 1)).then_some(block)
}

/// The target that the extent in front of the new one suggests, and how far it is in the file.
fn behind(geometry: &Geometry, before: Extent, offset: FileBlock, len: u64) -> (FsBlock, u64) {
    let (gap, length) = (offset.0 - before.end().0, u64::from(before.len));
    let kept = (gap <= GAP_LIMIT.saturating_mul(len)).then_some(length + gap);
    match shifted(geometry, before, kept) {
        Some(block) => (block, gap),
        None => (shifted(geometry, before, Some(length)).unwrap_or(before.start), 2 * gap),
    }
}

/// The target that the extent behind the new one suggests, and how far it is in the file.
fn in_front(geometry: &Geometry, after: Extent, offset: FileBlock, len: u64) -> (FsBlock, u64) {
    let gap = after.offset.0 - offset.0;
    let back = |by: u64| {
        let block = after.start.0.checked_sub(by)?;
        same_group(geometry, after, FsBlock(block))
    };
    if let Some(block) = (gap <= GAP_LIMIT.saturating_mul(len)).then(|| back(gap)).flatten() {
        (block, gap)
    } else if let Some(block) = back(len) {
        (block, gap + gap.saturating_sub(len))
    } else {
        (after.start, 2 * gap)
    }
}
