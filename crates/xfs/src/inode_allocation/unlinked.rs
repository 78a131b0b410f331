//! Lists of inodes that are in use but have no name: files that were removed while they were open,
//! files made without a name, and large files that are being freed.
//!
//! A group has 64 such lists: heads in its AGI, links in the inodes themselves
//! (docs/format/groups.md#unlinked-lists; docs/algorithms/inodes.md#unlinked-lists). Heads and
//! links belong to the lock of the group, so the link is changed in the cluster buffer alone, never
//! in the inode in memory.

use crate::bytes::be32;
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::agi::UNLINKED_LISTS;
use crate::format::{BufferKind, NEXT_UNLINKED_OFFSET};
use crate::group::GroupState;
use crate::inode::place;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode};

/// Puts an inode of a locked group at the head of its list.
///
/// # Errors
/// It is the head already, or its cluster cannot be read.
pub(crate) fn insert(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    inode: AgInode,
) -> Result<(), Error> {
    let next = *head(group, inode);
    if next == inode {
        return Err(group.corrupt("AGI", AgBlock(0), &format!("inode {inode} is listed already")));
    }
    set_next(trans, group, inode, next)?;
    *head(group, inode) = inode;
    Ok(())
}

/// Takes an inode of a locked group off its list.
///
/// # Errors
/// It is not on the list, the list is damaged, or a cluster cannot be read.
pub(crate) fn remove(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    inode: AgInode,
) -> Result<(), Error> {
    let next = next(trans, group, inode)?;
    if *head(group, inode) == inode {
        *head(group, inode) = next;
        return set_next(trans, group, inode, AgInode::NULL);
    }
    let mut before = *head(group, inode);
    // No list is longer than the group has inodes: one that is runs in a circle.
    for _ in 0..group.agi.count {
        if before.is_null() {
            break;
        }
        let follower = self::next(trans, group, before)?;
        if follower == inode {
            set_next(trans, group, before, next)?;
            return set_next(trans, group, inode, AgInode::NULL);
        }
        before = follower;
    }
    Err(group.corrupt(
        "AGI",
        AgBlock(0),
        &format!("inode {inode} is on no list of unlinked inodes"),
    ))
}

/// The inode behind this one on its list, null at the end.
///
/// # Errors
/// The inode cannot exist, or its cluster cannot be read.
pub(crate) fn next(
    trans: &Transaction<'_>,
    group: &GroupState,
    inode: AgInode,
) -> Result<AgInode, Error> {
    let (buffer, offset) = cluster(trans, group, inode)?;
    Ok(AgInode(be32(&buffer.read(), offset + NEXT_UNLINKED_OFFSET)))
}

fn head(group: &mut GroupState, inode: AgInode) -> &mut AgInode {
    &mut group.agi.unlinked[inode.0 as usize % UNLINKED_LISTS]
}

fn set_next(
    trans: &mut Transaction<'_>,
    group: &GroupState,
    inode: AgInode,
    next: AgInode,
) -> Result<(), Error> {
    let (buffer, offset) = cluster(trans, group, inode)?;
    if be32(&buffer.read(), offset + NEXT_UNLINKED_OFFSET) != next.0 {
        trans.edit(&buffer).put_list_pointer(offset, next);
    }
    Ok(())
}

/// The buffer with an inode, and where that is in there.
fn cluster(
    trans: &Transaction<'_>,
    group: &GroupState,
    inode: AgInode,
) -> Result<(BufferRef, usize), Error> {
    let geometry = trans.geometry();
    let number = geometry.inode_number(group.number, inode);
    if !geometry.valid_inode(number) {
        let what = format!("a list of unlinked inodes names {inode}, which cannot exist");
        return Err(group.corrupt("AGI", AgBlock(0), &what));
    }
    let (address, offset) = place(trans.geometry(), number);
    let buffer = trans.read(&address, BufferKind::InodeCluster)?;
    Ok((buffer, offset))
}
