//! New places for the contents of files, in what stays.

use super::size::Size;
use crate::alloc::{self, BusyBlocks, Request};
use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, RmapOwner};
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock};

/// How the new place of an extent is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) kind: ForkKind,
    /// Shortest length that is of use.
    pub(super) min_len: u32,
    /// What is written there goes past the journal.
    pub(super) unlogged: bool,
}

/// Takes space for the front of `old`, near the contents in front of it in the file.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    size: Size,
    old: &Extent,
    wanted: Wanted,
) -> Result<Extent, Error> {
    let target = near(trans, inode, size, wanted.kind, old.offset)?;
    trans.claim(old.len.into())?;
    let request = Request {
        user_data: wanted.unlogged && wanted.kind == ForkKind::Data,
        busy: if wanted.unlogged { BusyBlocks::Avoid } else { BusyBlocks::LastResort },
        min_len: wanted.min_len,
        owner: None,
        ..Request::metadata(target, old.len, RmapOwner(0))
    };
    let geometry = trans.geometry();
    let Some(found) = alloc::allocate_best(trans, &request, None)? else {
        return Err(Error::NoSpace { needed: old.len.into(), block_size: geometry.block_size() });
    };
    let start = geometry.fs_block(found.ag, found.start);
    Ok(Extent { start, len: found.len, ..*old })
}

/// The block behind the contents in front of `offset`, if that stays; else the inode.
fn near(
    trans: &Transaction<'_>,
    inode: &InodeState,
    size: Size,
    kind: ForkKind,
    offset: FileBlock,
) -> Result<FsBlock, Error> {
    let geometry = trans.geometry();
    let extents = bmap::extents(trans.volume(), inode, kind)?;
    let front = extents.last_in(FileBlock(0), offset).map(|(_, part)| part);
    let behind = front.map(|part| FsBlock(part.start.0 + u64::from(part.len)));
    let stays = |block: &FsBlock| {
        let (ag, at) = geometry.split_block(*block);
        let last = size.last_group();
        geometry.valid_extent(*block, 1) && (ag < last || (ag == last && at.0 < size.last))
    };
    Ok(behind.filter(stays).unwrap_or_else(|| geometry.inode_fs_block(inode.number)))
}
