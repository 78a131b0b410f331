//! Blocks that an operation may need in the worst case: it reserves them before it changes
//! anything, so that it does not run out of space half-way (docs/algorithms/names.md#units).

use crate::bmap;
use crate::error::Error;
use crate::format::{attr_remote_blocks, symlink_blocks};
use crate::inode::{ForkKind, InodeState};
use crate::trans::Transaction;

/// Blocks of a directory that one more name can make necessary: a path of the hash tree, a data
/// block and a block of the free index.
const DIRECTORY_BLOCKS: u64 = 7;

/// Blocks of an attribute fork that one more attribute can make necessary: a path of the hash tree,
/// twice where an entry takes more than half a leaf.
const ATTRIBUTE_BLOCKS: u64 = 10;

/// One more name in a directory.
pub(crate) fn entry(trans: &Transaction<'_>) -> u64 {
    let per = u64::from(trans.geometry().dir_block_blocks());
    DIRECTORY_BLOCKS * per + maps(trans)
}

/// One more attribute with a value of `len` bytes. Moving the border of the forks may push the map
/// of the data into a block.
pub(crate) fn attribute(trans: &Transaction<'_>, len: usize) -> u64 {
    ATTRIBUTE_BLOCKS + 1 + u64::from(attr_remote_blocks(trans.geometry(), len)) + maps(trans)
}

/// One more parent pointer, where the volume has them.
pub(crate) fn parent_pointer(trans: &Transaction<'_>) -> u64 {
    if trans.geometry().features.parent_pointers() { attribute(trans, 0) } else { 0 }
}

/// One more inode.
pub(crate) fn inode(trans: &Transaction<'_>) -> u64 {
    let trees = 2 * trans.volume().heights().inode;
    u64::from(trans.geometry().chunk_blocks()) + u64::from(trees)
}

/// The target of a symbolic link.
pub(crate) fn symlink(trans: &Transaction<'_>, len: usize) -> u64 {
    u64::from(symlink_blocks(trans.geometry(), len)) + maps(trans)
}

/// Blocks of a directory that may go with a name: of data, of the hash tree, of the free index.
const REMOVED_BLOCKS: u64 = 3;

/// One name or attribute less: blocks that go may split the extents they are in.
pub(crate) fn removal(trans: &Transaction<'_>) -> u64 {
    REMOVED_BLOCKS * (u64::from(trans.volume().heights().bmap_data) + 1)
}

/// One name less in this directory, as [`removal`].
pub(crate) fn removal_of(trans: &Transaction<'_>, directory: &InodeState) -> Result<u64, Error> {
    bmap::tree_blocks(trans, directory, ForkKind::Data, REMOVED_BLOCKS)
}

/// The tree that maps a few more blocks of a fork: once for splits, once for what a step claims
/// before it knows.
fn maps(trans: &Transaction<'_>) -> u64 {
    2 * u64::from(trans.volume().heights().bmap_data)
}
