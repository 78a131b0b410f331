//! The records of groups about the extents of a fork: reverse mappings, reference counts, free
//! space.

use super::tree::tree_mapping;
use crate::alloc;
use crate::error::Error;
use crate::format::{
    BufferKind, Extent, FileType, Header, InodeFlags2, RmapFlags, RmapOwner, RmapRecord, TreeKind,
};
use crate::group::GroupState;
use crate::group_tree::rmap::{self, Sharing};
use crate::inode::{ForkKind, InodeState};
use crate::refcount;
use crate::trans::Transaction;
use crate::units::{AgNumber, FsBlock, InodeNumber};

/// Whether the blocks of a fork may have further owners.
pub(super) fn sharing(inode: &InodeState, kind: ForkKind) -> Sharing {
    let shared = kind == ForkKind::Data && inode.core.flags2.contains(InodeFlags2::REFLINK);
    if shared { Sharing::Possible } else { Sharing::Excluded }
}

/// Reverse mapping of an extent of a fork.
fn mapping(
    trans: &Transaction<'_>,
    inode: InodeNumber,
    kind: ForkKind,
    extent: &Extent,
) -> RmapRecord {
    let mut flags = RmapFlags::empty();
    if kind == ForkKind::Attr {
        flags |= RmapFlags::ATTR_FORK;
    }
    if extent.unwritten {
        flags |= RmapFlags::UNWRITTEN;
    }
    let (_, start) = trans.geometry().split_block(extent.start);
    let owner = RmapOwner::inode(inode);
    RmapRecord { start, len: extent.len, owner, offset: extent.offset, flags }
}

/// Enters the fork as an owner of the blocks of an extent.
pub(super) fn enter(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    extent: &Extent,
) -> Result<(), Error> {
    change(trans, inode, kind, extent, rmap::add)
}

/// Removes the fork as an owner of the blocks of an extent, which keep their count of owners.
pub(super) fn leave(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    extent: &Extent,
) -> Result<(), Error> {
    change(trans, inode, kind, extent, rmap::remove)
}

/// Changes the reverse mapping of an extent of a fork.
fn change(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    extent: &Extent,
    how: impl FnOnce(&mut Transaction<'_>, &mut GroupState, RmapRecord, Sharing) -> Result<(), Error>,
) -> Result<(), Error> {
    let record = mapping(trans, inode.number, kind, extent);
    let (ag, _) = trans.geometry().split_block(extent.start);
    trans.in_group(ag, |trans, group| {
        // The reverse-mapping tree may split or join: its free list must be able to feed it.
        alloc::fill_free_list(trans, group)?;
        how(trans, group, record, sharing(inode, kind))
    })
}

/// Gives up the blocks of an extent that was unmapped: those without another owner become free.
pub(super) fn release(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    extent: &Extent,
) -> Result<(), Error> {
    leave(trans, inode, kind, extent)?;
    let (ag, start) = trans.geometry().split_block(extent.start);
    let len = extent.len;
    trans.in_group(ag, |trans, group| {
        if sharing(inode, kind) == Sharing::Excluded {
            return alloc::free_in_group(trans, group, start, len, None);
        }
        for freed in refcount::decrease(trans, group, start, len)? {
            alloc::free_in_group(trans, group, freed.start, freed.len, None)?;
        }
        Ok(())
    })?;
    if let Some(unit) = buffer_blocks(trans, inode, kind, len) {
        trans.forget_blocks(ag, start, len, unit);
    }
    Ok(())
}

/// Blocks of each metadata buffer in an extent of `len` blocks of a fork; `None` for file data.
fn buffer_blocks(
    trans: &Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    len: u32,
) -> Option<u32> {
    match (kind, inode.file_type()) {
        (ForkKind::Attr, _) => Some(1),
        (ForkKind::Data, FileType::Directory) => Some(trans.geometry().dir_block_blocks()),
        // One buffer for each extent.
        (ForkKind::Data, FileType::Symlink) => Some(len),
        (ForkKind::Data, _) => None,
    }
}

/// Counts one more owner of the blocks of an extent.
pub(super) fn share(trans: &mut Transaction<'_>, extent: &Extent) -> Result<(), Error> {
    let (ag, start) = trans.geometry().split_block(extent.start);
    trans.in_group(ag, |trans, group| refcount::increase(trans, group, start, extent.len))
}

/// Makes the inode the owner of the blocks of its fork and of these, which are those of the fork's
/// tree: so far both were those of the inode `from`.
///
/// # Errors
/// A tree is damaged, or the device failed.
pub(crate) fn transfer(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    (from, tree): (InodeNumber, &[FsBlock]),
) -> Result<(), Error> {
    let volume = trans.volume();
    for extent in super::extents(volume, inode, kind)?.as_slice() {
        let old = mapping(trans, from, kind, extent);
        let ag = trans.geometry().split_block(extent.start).0;
        hand_over(trans, ag, old, inode.number, sharing(inode, kind))?;
    }
    for block in tree {
        let old = tree_mapping(trans, from, kind, *block);
        let ag = trans.geometry().split_block(*block).0;
        hand_over(trans, ag, old, inode.number, Sharing::Excluded)?;
        let buffer_kind = BufferKind::Tree(TreeKind::Bmbt);
        let buffer = trans.read(&volume.block_address(*block, 1), buffer_kind)?;
        if let Some(offset) = Header::of(buffer_kind).and_then(|it| it.inode_owner_offset()) {
            trans.edit(&buffer).edit().put_be64(offset, inode.number.0);
        }
    }
    Ok(())
}

/// Gives a reverse mapping another owner.
fn hand_over(
    trans: &mut Transaction<'_>,
    ag: AgNumber,
    old: RmapRecord,
    to: InodeNumber,
    sharing: Sharing,
) -> Result<(), Error> {
    let new = RmapRecord { owner: RmapOwner::inode(to), ..old };
    trans.in_group(ag, |trans, group| {
        // Records that were merged may be apart afterwards: the tree can grow.
        alloc::fill_free_list(trans, group)?;
        rmap::remove(trans, group, old, sharing)?;
        alloc::fill_free_list(trans, group)?;
        rmap::add(trans, group, new, sharing)
    })
}
