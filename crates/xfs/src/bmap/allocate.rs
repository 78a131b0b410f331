//! New space for a fork: where it goes, and in how many pieces.
//!
//! Choice of the target: algorithms reference, section 5.3; of the length: section 3.3, in the
//! simple form of asking for all of it, then for ever smaller pieces.

use super::{MAX_EXTENT_LEN, add, extents};
use crate::alloc::{self, Request};
use crate::error::Error;
use crate::format::{Extent, FileType, RmapOwner};
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};
use smallvec::SmallVec;

/// Maps `len` unmapped file blocks from `offset` to newly allocated ones; returns the extents.
/// `first` is where the first extent of a fork should be, if not near the inode.
///
/// # Errors
/// Not enough space, a damaged tree, or the device failed.
pub fn allocate(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    offset: FileBlock,
    len: u64,
    first: Option<FsBlock>,
) -> Result<SmallVec<[Extent; 1]>, Error> {
    let mut mapped = SmallVec::new();
    let (mut offset, mut left) = (offset, len);
    while left > 0 {
        let piece = allocate_piece(trans, inode, kind, offset, left, first)?;
        mapped.push(piece);
        offset = piece.end();
        left -= u64::from(piece.len);
    }
    Ok(mapped)
}

/// Maps as much as possible of `len` file blocks in one extent.
fn allocate_piece(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    offset: FileBlock,
    len: u64,
    first: Option<FsBlock>,
) -> Result<Extent, Error> {
    let geometry = trans.geometry();
    // Half a group is always worth asking for; a whole one never is, its headers are in the way.
    let most = u64::from(MAX_EXTENT_LEN.min(geometry.ag_blocks - geometry.ag_blocks / 16));
    let max_len = len.min(most) as u32;
    let mut request = Request {
        user_data: kind == ForkKind::Data && inode.file_type() == FileType::Regular,
        min_left: min_left(inode, kind),
        owner: None,
        ..Request::metadata(target(trans, inode, kind, offset, first)?, max_len, RmapOwner(0))
    };
    if request.user_data && geometry.stripe_unit > 0 && max_len >= geometry.stripe_unit {
        request.alignment = geometry.stripe_unit;
    }
    loop {
        if let Some(found) = alloc::allocate(trans, &request)? {
            let start = geometry.fs_block(found.ag, found.start);
            let extent = Extent { offset, start, len: found.len, unwritten: false };
            add(trans, inode, kind, extent)?;
            return Ok(extent);
        }
        if request.alignment > 1 {
            request.alignment = 1;
        } else if request.min_len > 1 {
            request.min_len = (request.min_len / 4).max(1);
        } else {
            return Err(Error::NoSpace { needed: len, block_size: geometry.block_size() });
        }
    }
}

/// Blocks that the mapping itself may need in the same group afterwards.
fn min_left(inode: &InodeState, kind: ForkKind) -> u32 {
    match inode.fork(kind).map(|fork| &fork.content) {
        Some(ForkContent::Btree(root, _)) => u32::from(root.level()) + 1,
        _ => 1,
    }
}

/// The block a new extent at `offset` should be at: behind the extent before it, else in front of
/// the one after it, else at `first`, else near the inode.
fn target(
    trans: &Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    offset: FileBlock,
    first: Option<FsBlock>,
) -> Result<FsBlock, Error> {
    let geometry = trans.geometry();
    let extents = extents(trans.volume(), inode, kind)?;
    // Shifted by the logical gap when that stays in the group, as if the hole were filled later.
    let shifted = |block: FsBlock, by: Option<u64>| {
        by.map(FsBlock).filter(|shifted| {
            geometry.split_block(*shifted).0 == geometry.split_block(block).0
                && geometry.valid_extent(*shifted, 1)
        })
    };
    if let Some(before) = extents.before(offset) {
        let behind = FsBlock(before.start.0 + u64::from(before.len));
        let gap = offset.0 - before.end().0;
        return Ok(shifted(before.start, behind.0.checked_add(gap)).unwrap_or(before.start));
    }
    if let Some(after) = extents.at_or_after(offset) {
        let gap = after.offset.0 - offset.0;
        return Ok(shifted(after.start, after.start.0.checked_sub(gap)).unwrap_or(after.start));
    }
    Ok(first.unwrap_or_else(|| geometry.inode_fs_block(inode.number)))
}
