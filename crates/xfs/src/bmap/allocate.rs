//! New space for a fork: its place, and its pieces.
//!
//! The target is chosen beside the file's other extents, the length by what the groups have.

use super::add;
use super::target::{Target, target};
use crate::alloc::{self, BusyBlocks, EndOfFile, Request};
use crate::error::Error;
use crate::format::{Extent, FileType, RmapOwner};
use crate::inode::MAX_EXTENT_LEN;
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};
use smallvec::SmallVec;
use std::ops::Range;

/// Without a hint the length of a shortened extent suits pages of this size, as a kernel's.
const PAGE: u32 = 4096;

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
        let room = AllocationWindow::only(offset..FileBlock(offset.0 + left));
        let piece = find_extent(trans, inode, (kind, busy), &room, first)?;
        add(trans, inode, kind, &[piece])?;
        mapped.push(piece);
        offset = piece.end();
        left -= u64::from(piece.len);
    }
    trans.unclaim(worst.saturating_sub(inode.core.nblocks - blocks_before));
    Ok(mapped)
}

/// Maps an extent whose blocks were taken, at file blocks that are not mapped.
///
/// # Errors
/// No space for the tree, a damaged tree, or the device failed.
pub(crate) fn map(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    extent: Extent,
) -> Result<(), Error> {
    let worst = u64::from(trans.volume().heights().bmap_data);
    trans.claim(worst)?;
    let before = inode.core.nblocks + u64::from(extent.len);
    add(trans, inode, kind, &[extent])?;
    trans.unclaim(worst.saturating_sub(inode.core.nblocks - before));
    Ok(())
}

/// Blocks of a file that space is wanted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationWindow {
    /// The blocks that are needed.
    pub wanted: Range<FileBlock>,
    /// These and others around them, which are taken as well.
    pub window: Range<FileBlock>,
}

impl AllocationWindow {
    /// AllocationWindow for these blocks alone.
    #[must_use]
    pub fn only(blocks: Range<FileBlock>) -> Self {
        Self { wanted: blocks.clone(), window: blocks }
    }
}

/// Takes one extent of file data, for as much as possible of the window; of a shorter one, as much
/// as possible is for the blocks wanted. The caller maps it in the same transaction. Nothing of the
/// fork is changed yet: after an error the transaction can be committed or go on.
///
/// # Errors
/// As for [`allocate`]; [`Error::Busy`] if all space that would do waits for the journal.
pub fn find_space(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    room: &AllocationWindow,
) -> Result<Extent, Error> {
    let AllocationWindow { wanted, window } = room;
    let data = (ForkKind::Data, BusyBlocks::Avoid);
    let found = find_extent(trans, inode, data, room, None)?;
    let len = u64::from(found.len);
    let offset = if len <= wanted.end.0 - wanted.start.0 {
        wanted.start
    } else {
        window.start.max(FileBlock(wanted.end.0.saturating_sub(len)))
    };
    Ok(Extent { offset, ..found })
}

/// Takes one extent for as much as possible of a window, from its front.
fn find_extent(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    (kind, busy): (ForkKind, BusyBlocks),
    room: &AllocationWindow,
    first: Option<FsBlock>,
) -> Result<Extent, Error> {
    let blocks = |range: &Range<FileBlock>| range.end.0 - range.start.0;
    let (offset, len) = (room.window.start, blocks(&room.window));
    let geometry = trans.geometry();
    let max_len = len.min(u64::from(MAX_EXTENT_LEN)) as u32;
    let user_data = kind == ForkKind::Data && inode.file_type() == FileType::Regular;
    let Target { block, at_end, continues } = target(trans, inode, kind, (offset, len), first)?;
    // A directory block is one buffer, and kernels do not replay one that lies in pieces.
    let directory = kind == ForkKind::Data && inode.file_type() == FileType::Directory;
    let whole = directory && trans.is_live();
    let (multiple, remainder) = form(inode, user_data, offset, geometry.block_size());
    let request = Request {
        user_data,
        busy,
        multiple,
        remainder,
        min_left: min_left(inode, kind),
        min_len: if whole { max_len } else { 1 },
        owner: None,
        ..Request::metadata(block, max_len, RmapOwner(0))
    };
    let stripe_unit = geometry.stripe_unit;
    let is_striped = stripe_unit > 0 && blocks(&room.wanted) >= stripe_unit.into();
    let end_of_file =
        (user_data && at_end && is_striped).then_some(EndOfFile { stripe_unit, continues });
    let Some(found) = alloc::allocate_best(trans, &request, end_of_file)? else {
        return Err(Error::NoSpace { needed: len, block_size: geometry.block_size() });
    };
    let start = geometry.fs_block(found.ag, found.start);
    Ok(Extent { offset, start, len: found.len, unwritten: false })
}

/// The form that the length of an extent at `offset` should have, if it cannot be the one that is
/// wanted: its end is at a multiple of the hint, or of a page.
fn form(inode: &InodeState, user_data: bool, offset: FileBlock, block_size: usize) -> (u32, u32) {
    let hint = if user_data { inode.core.extent_size_hint() } else { 0 };
    let page = (PAGE / block_size as u32).max(1);
    let multiple = if hint > 0 { hint } else { page };
    let over = (offset.0 % u64::from(multiple)) as u32;
    (multiple, if over == 0 { 0 } else { multiple - over })
}

/// Blocks that the mapping itself may need in the same group afterwards.
fn min_left(inode: &InodeState, kind: ForkKind) -> u32 {
    match inode.fork(kind).map(|fork| &fork.content) {
        Some(ForkContent::Btree(root, _)) => u32::from(root.level()) + 1,
        _ => 1,
    }
}
