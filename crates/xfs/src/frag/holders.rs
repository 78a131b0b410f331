//! What lies in a block.

use crate::btree::Bnobt;
use crate::error::Error;
use crate::format::{AllocRecord, RmapFlags, RmapOwner, RmapRecord};
use crate::group_tree;
use crate::scan::{GroupPart, for_each_mapping};
use crate::units::{AgBlock, AgNumber, FileBlock};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// What has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockHolder {
    /// Nobody: it is in this free extent of its group.
    Free(AllocRecord),
    /// A file, or a part of the volume.
    Used(RmapRecord),
    /// One of the trees of its group, or its list of free blocks: which, only reverse mappings tell.
    Tree,
}

/// What has a block of a group; of a shared one, all files that do. Without reverse mappings, all inodes
/// of the volume are read.
///
/// # Errors
/// There is no such block; a structure is damaged; the device failed.
pub fn block_holders(
    volume: &Volume,
    ag: AgNumber,
    block: AgBlock,
) -> Result<Vec<BlockHolder>, Error> {
    let geometry = volume.geometry();
    if ag.0 >= geometry.ag_count || block.0 >= geometry.ag_length(ag) {
        return Err(Error::Invalid(format!("there is no block {block} in group {ag}")));
    }
    let mut free = None;
    group_tree::free_extents::<Bnobt>(volume, ag, |extent| {
        if extent.start <= block && block.0 - extent.start.0 < extent.len {
            free = Some(extent);
        }
    })?;
    if let Some(extent) = free {
        return Ok(vec![BlockHolder::Free(extent)]);
    }
    let mut found = Vec::new();
    if geometry.features.rmapbt() {
        group_tree::owners(volume, ag, block, 1, |record| {
            found.push(BlockHolder::Used(record));
            ControlFlow::Continue(())
        })?;
    } else if let Some(owner) = part_of_the_volume(volume, ag, block)? {
        let (offset, flags) = (FileBlock(0), RmapFlags::empty());
        found.push(BlockHolder::Used(RmapRecord { start: block, len: 1, owner, offset, flags }));
    } else {
        let part = GroupPart { ag, start: block.0, len: 1 };
        for_each_mapping(volume, &[part], &mut |_, record| found.push(BlockHolder::Used(record)))?;
    }
    if found.is_empty() {
        found.push(BlockHolder::Tree);
    }
    Ok(found)
}

/// The part of the volume that has a block, where it has a fixed place or a list.
fn part_of_the_volume(
    volume: &Volume,
    ag: AgNumber,
    block: AgBlock,
) -> Result<Option<RmapOwner>, Error> {
    let geometry = volume.geometry();
    if block <= geometry.ag_header_last() {
        return Ok(Some(RmapOwner::FILE_SYSTEM));
    }
    let journal = geometry.log_start.0;
    let at = geometry.fs_block(ag, block).0;
    let is_journal = !geometry.log_start.is_null()
        && (journal..journal + u64::from(geometry.log_blocks)).contains(&at);
    if is_journal {
        return Ok(Some(RmapOwner::LOG));
    }
    let mut is_chunk = false;
    let per_block = geometry.inodes_per_block();
    group_tree::inode_chunks(volume, ag, |chunk| {
        let first = u64::from(block.0) * u64::from(per_block);
        let index = first.wrapping_sub(chunk.start.0.into());
        is_chunk |= index < 64 && chunk.existing() >> index & 1 == 1;
    })?;
    if is_chunk {
        return Ok(Some(RmapOwner::INODES));
    }
    let mut is_staged = false;
    group_tree::staging_extents(volume, ag, |part| {
        is_staged |= part.start <= block && block.0 - part.start.0 < part.len;
    })?;
    Ok(is_staged.then_some(RmapOwner::COW))
}
