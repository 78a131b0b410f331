//! New space for a fork: where it goes, and in how many pieces.
//!
//! The target is chosen beside the file's other extents, the length by what the groups have.

use super::target::{Target, target};
use super::{MAX_EXTENT_LEN, add};
use crate::alloc::{self, BusyBlocks, EndOfFile, Request};
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
    allocate_in(trans, inode, (kind, BusyBlocks::Avoid), (offset, len), first)
}

/// As [`allocate`], for blocks whose content goes through the journal.
///
/// # Errors
/// As for [`allocate`].
pub(super) fn allocate_logged(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    offset: FileBlock,
    len: u64,
) -> Result<SmallVec<[Extent; 1]>, Error> {
    allocate_in(trans, inode, (kind, BusyBlocks::LastResort), (offset, len), None)
}

fn allocate_in(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    (kind, busy): (ForkKind, BusyBlocks),
    (offset, len): (FileBlock, u64),
    first: Option<FsBlock>,
) -> Result<SmallVec<[Extent; 1]>, Error> {
    let worst = len + u64::from(trans.volume().heights().bmap_data);
    trans.claim(worst)?;
    let blocks_before = inode.core.nblocks;
    let mut mapped = SmallVec::new();
    let (mut offset, mut left) = (offset, len);
    while left > 0 {
        // As much as possible in one extent.
        let piece = find(trans, inode, (kind, busy), (offset, left), first)?;
        add(trans, inode, kind, piece)?;
        mapped.push(piece);
        offset = piece.end();
        left -= u64::from(piece.len);
    }
    trans.unclaim(worst.saturating_sub(inode.core.nblocks - blocks_before));
    Ok(mapped)
}

/// Takes one extent for as much as possible of `len` file blocks from `offset`, which is mapped by
/// the caller in the same transaction. Nothing of the fork is changed yet: after an error the
/// transaction can be committed or go on.
///
/// # Errors
/// As for [`allocate`]; [`Error::Busy`] if all space that would do waits for the journal.
pub fn find_space(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    range: (FileBlock, u64),
    first: Option<FsBlock>,
) -> Result<Extent, Error> {
    find(trans, inode, (kind, BusyBlocks::Avoid), range, first)
}

fn find(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    (kind, busy): (ForkKind, BusyBlocks),
    (offset, len): (FileBlock, u64),
    first: Option<FsBlock>,
) -> Result<Extent, Error> {
    let geometry = trans.geometry();
    let max_len = len.min(u64::from(MAX_EXTENT_LEN)) as u32;
    let user_data = kind == ForkKind::Data && inode.file_type() == FileType::Regular;
    let Target { block, at_end, continues } = target(trans, inode, kind, (offset, len), first)?;
    // A directory block is one buffer, and kernels do not replay one that lies in pieces.
    let directory = kind == ForkKind::Data && inode.file_type() == FileType::Directory;
    let whole = directory && trans.is_live();
    let request = Request {
        user_data,
        busy,
        min_left: min_left(inode, kind),
        min_len: if whole { max_len } else { 1 },
        owner: None,
        ..Request::metadata(block, max_len, RmapOwner(0))
    };
    let end_of_file = (user_data && at_end && geometry.stripe_unit > 0)
        .then_some(EndOfFile { stripe_unit: geometry.stripe_unit, continues });
    let Some(found) = alloc::allocate_best(trans, &request, end_of_file)? else {
        return Err(Error::NoSpace { needed: len, block_size: geometry.block_size() });
    };
    let start = geometry.fs_block(found.ag, found.start);
    Ok(Extent { offset, start, len: found.len, unwritten: false })
}

/// Blocks that the mapping itself may need in the same group afterwards.
fn min_left(inode: &InodeState, kind: ForkKind) -> u32 {
    match inode.fork(kind).map(|fork| &fork.content) {
        Some(ForkContent::Btree(root, _)) => u32::from(root.level()) + 1,
        _ => 1,
    }
}
