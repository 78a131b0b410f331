//! Chunks without an inode in use freed: kernels keep some, and those of blocks with more inodes than
//! a record has.

use super::free::{free_blocks, update_finobt};
use crate::alloc::{self, SpaceTree};
use crate::btree::{Cursor, Inobt, Lookup};
use crate::error::Error;
use crate::format::{InodeChunkRecord, RmapOwner};
use crate::geometry::INODES_PER_CHUNK;
use crate::group::GroupState;
use crate::group_tree::first_inode_chunk;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode, AgNumber};
use crate::volume::Volume;

/// Frees the chunks of a group from an inode on that have none in use. A block goes if all of its
/// chunks do.
///
/// # Errors
/// A structure of the group is damaged; the device failed.
pub(crate) fn free_empty_chunks(volume: &Volume, ag: AgNumber, from: AgInode) -> Result<(), Error> {
    let mut next = Some(from);
    while let Some(from) = next
        && let Some(first) = first_inode_chunk(volume, ag, from)?
    {
        let mut chunks = vec![first];
        let count = volume.geometry().inodes_per_block().div_ceil(INODES_PER_CHUNK);
        while chunks.len() < count as usize
            && let Some(start) = chunks[chunks.len() - 1].start.0.checked_add(INODES_PER_CHUNK)
            && let Some(chunk) = first_inode_chunk(volume, ag, AgInode(start))?
        {
            chunks.push(chunk);
        }
        next = chunks[chunks.len() - 1].start.0.checked_add(INODES_PER_CHUNK).map(AgInode);
        if chunks.len() == count as usize && chunks.iter().all(|it| it.freecount == it.count) {
            let mut trans = volume.begin()?;
            trans.in_group(ag, |trans, group| free_chunks(trans, group, &chunks))?;
            trans.commit(&mut [])?;
        }
    }
    Ok(())
}

/// Frees the chunks of a block of many inodes, or the only chunk of some blocks.
fn free_chunks(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    chunks: &[InodeChunkRecord],
) -> Result<(), Error> {
    for chunk in chunks {
        let mut cursor = Cursor::<Inobt>::new();
        let mut tree = SpaceTree::<Inobt>::new(trans, group);
        if cursor.find(&mut tree, &chunk.start, Lookup::Equal)? != Some(*chunk) {
            return Err(group.corrupt("inobt", AgBlock(0), "a chunk changed while it was freed"));
        }
        cursor.delete(&mut tree)?;
        update_finobt(trans, group, chunk, None)?;
        let agi = &mut group.agi;
        let left = agi.count.checked_sub(chunk.count.into());
        let left_free = agi.free_count.checked_sub(chunk.freecount.into());
        let Some((left, left_free)) = left.zip(left_free) else {
            let what = format!("the chunk at inode {} has more inodes than the group", chunk.start);
            return Err(group.corrupt("AGI", AgBlock(0), &what));
        };
        (agi.count, agi.free_count) = (left, left_free);
    }
    if let [chunk] = chunks {
        return free_blocks(trans, group, chunk);
    }
    let (block, _) = trans.geometry().inode_block(chunks[0].start);
    alloc::free_in_group(trans, group, block, 1, Some(RmapOwner::INODES))?;
    trans.forget_blocks(group.number, block, 1, 1);
    Ok(())
}
