//! The groups that a fork has blocks in.

use super::load::extents;
use super::tree::MapReader;
use crate::btree::Cursor;
use crate::error::Error;
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::units::AgNumber;
use crate::volume::Volume;

/// The groups that hold blocks of a fork or of its tree, or did since it was read, each once,
/// ascending: a change anywhere in the fork may give blocks back to them.
///
/// # Errors
/// The tree is damaged, or the device failed.
pub(crate) fn groups<'i>(
    volume: &Volume,
    inode: &'i InodeState,
    kind: ForkKind,
) -> Result<&'i [AgNumber], Error> {
    let Some(fork) = inode.fork(kind) else { return Ok(&[]) };
    let find = || -> Result<Vec<AgNumber>, Error> {
        let mut groups = Vec::new();
        tree_groups(volume, inode, kind, &mut groups)?;
        let extents = extents(volume, inode, kind)?.as_slice();
        groups.extend(extents.iter().map(|extent| volume.geometry().split_block(extent.start).0));
        groups.sort_unstable();
        groups.dedup();
        Ok(groups)
    };
    if let Some(known) = fork.groups.get() {
        debug_assert!(
            find().ok().is_none_or(|found| found.iter().all(|ag| known.contains(ag))),
            "inode {}",
            inode.number
        );
        return Ok(known);
    }
    let found = find()?;
    Ok(fork.groups.get_or_init(|| found))
}

/// Adds the groups that the blocks of a fork's tree lie in: a change anywhere in the fork may give
/// blocks back to them. A group may come several times.
///
/// # Errors
/// The tree is damaged, or the device failed.
pub fn tree_groups(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
    groups: &mut Vec<AgNumber>,
) -> Result<(), Error> {
    let Some(ForkContent::Btree(root, _)) = inode.fork(kind).map(|fork| &fork.content) else {
        return Ok(());
    };
    // In a damaged tree one block may be met any number of times.
    let mut left = inode.core.nblocks;
    Cursor::for_each_below_root(&mut MapReader { volume, inode: inode.number, root }, |block| {
        left = left.checked_sub(1).ok_or_else(|| Error::Inode {
            inode: inode.number,
            what: "its mapping tree has more blocks than the inode".into(),
        })?;
        groups.push(volume.geometry().split_block(block).0);
        Ok(())
    })
}
