//! Changes of a fork between the list in the inode and the tree.
//!
//! docs/algorithms/file-mapping.md#formats: a fork is a tree exactly when its list does not fit.

use super::tree::{MapTree, allocate_block};
use crate::btree::{Cursor, WriteTree};
use crate::error::Error;
use crate::format::{BmapRoot, BufferKind, Extent, HeaderLayout, NewHeader, TreeKind};
use crate::inode::{Fork, ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;

/// Number of extents that fit the fork as a list.
pub(super) fn list_capacity(trans: &Transaction<'_>, inode: &InodeState, kind: ForkKind) -> usize {
    inode.inline_size(trans.geometry(), kind) / Extent::LEN
}

/// Brings a fork into the form that its number of extents asks for.
pub(super) fn fit_form(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    to_list_if_possible(trans, inode, kind)?;
    to_tree_if_needed(trans, inode, kind)
}

/// Moves the list of a fork into a tree if it does not fit the inode any more.
fn to_tree_if_needed(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    let full_list = inode.fork(kind).is_some_and(|fork| {
        matches!(fork.content, ForkContent::Extents)
            && fork.extent_count() > list_capacity(trans, inode, kind)
    });
    if full_list { to_tree(trans, inode, kind) } else { Ok(()) }
}

/// Moves the list of a fork into a tree: one leaf below the root in the inode.
pub(super) fn to_tree(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    let hint = trans.geometry().inode_fs_block(inode.number);
    let Some((block, buffer)) = allocate_block(trans, inode, kind, hint)? else {
        return Err(Error::NoSpace { needed: 1, block_size: trans.geometry().block_size() });
    };
    let size = inode.inline_size(trans.geometry(), kind);
    let sector = trans.geometry().sector(block).0;
    let uuid = trans.geometry().meta_uuid.into_bytes();
    let owner = inode.number.0;
    let layout = HeaderLayout::new(TreeKind::Bmbt, trans.geometry().features.crc);
    let mut guard = trans.edit(&buffer);
    let mut edit = guard.edit();
    layout.init(&mut edit, TreeKind::Bmbt, &NewHeader { level: 0, sector, uuid, owner });
    let fork = inode.fork_mut(kind);
    let extents = fork.extents.get().expect("a list is in memory").as_slice();
    // A list is longer than an inode by a few extents at most, far below what a leaf holds.
    edit.put_be16(HeaderLayout::NUMRECS, extents.len() as u16);
    let start = layout.header_len();
    let records = edit.region(start..start + extents.len() * Extent::LEN);
    for (extent, out) in extents.iter().zip(records.chunks_exact_mut(Extent::LEN)) {
        extent.encode(out);
    }
    let (first, count) = (extents[0].offset, extents.len() as u64);
    let root = BmapRoot::over_leaf(size, first, block).ok_or_else(|| Error::Inode {
        inode: inode.number,
        what: format!("a fork of {size} bytes has no room for a mapping tree"),
    })?;
    inode.fork_mut(kind).content = ForkContent::Btree(root, count);
    Ok(())
}

/// Makes the root of a fork's tree as long as its part of the inode is now. If its entries do not
/// fit, they move to a block.
pub(super) fn resize_root(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    let size = inode.inline_size(trans.geometry(), kind);
    let block_size = trans.geometry().block_size();
    let resized = |inode: &InodeState| match inode.fork(kind).map(|fork| &fork.content) {
        Some(ForkContent::Btree(root, _)) => Some(root.resized(size)),
        _ => None,
    };
    let Some(fitting) = resized(inode) else { return Ok(()) };
    let root = match fitting {
        Some(root) => Some(root),
        None => {
            let mut tree = MapTree { trans, inode, kind };
            Cursor::new().lower_root(&mut tree)?.or_no_space(block_size)?;
            resized(inode).flatten()
        }
    };
    if let (ForkContent::Btree(slot, _), Some(root)) = (&mut inode.fork_mut(kind).content, root) {
        *slot = root;
    }
    Ok(())
}

/// Moves the extents of a tree into the inode if they fit there again.
fn to_list_if_possible(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    let capacity = list_capacity(trans, inode, kind);
    let Some(Fork { content: ForkContent::Btree(root, count), .. }) = inode.fork(kind) else {
        return Ok(());
    };
    if *count as usize > capacity {
        return Ok(());
    }
    // As few extents as fit an inode fit one leaf: the tree has joined down to it.
    let leaf = (root.level() == 1 && root.len() == 1).then(|| root.entries().next()).flatten();
    let Some((_, leaf)) = leaf else {
        let what = format!("{count} extents need more than one leaf");
        return Err(Error::Inode { inode: inode.number, what });
    };
    let address = trans.volume().block_address(leaf, 1);
    let buffer = trans.read(&address, BufferKind::Tree(TreeKind::Bmbt))?;
    MapTree { trans, inode, kind }.free(leaf, buffer)?;
    inode.fork_mut(kind).content = ForkContent::Extents;
    Ok(())
}
