//! Blocks that belong to nobody, of a volume without reverse mappings: all owners are looked at.

use super::mappings::for_each_mapping;
use super::part::GroupPart;
use crate::alloc;
use crate::btree::Bnobt;
use crate::error::Error;
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::group_tree::{free_extents, inode_chunks, staging_extents};
use crate::units::{AgBlock, AgInode, AgNumber};
use crate::volume::Volume;
use fixedbitset::FixedBitSet;

/// Most blocks of a pass over the inodes, if it is not one group: a bit each, 64 MiB. So a volume of
/// 2 TiB with blocks of 4 KiB takes one pass.
const PASS_BLOCKS: u64 = 1 << 29;

/// Visits the extents that are neither free nor owned, ascending.
///
/// # Errors
/// A structure is damaged; the device failed.
pub(crate) fn for_each_unowned(
    volume: &Volume,
    visit: &mut dyn FnMut(GroupPart),
) -> Result<(), Error> {
    let geometry = volume.geometry();
    let most = (PASS_BLOCKS / u64::from(geometry.ag_blocks)).max(1) as u32;
    let mut next = 0;
    while next < geometry.ag_count {
        let end = next.saturating_add(most).min(geometry.ag_count);
        let groups = (next..end).map(|ag| GroupPart::whole(geometry, AgNumber(ag))).collect();
        for_each_in(volume, groups, visit)?;
        next = end;
    }
    Ok(())
}

/// As [`for_each_unowned`], in some groups, which follow each other.
fn for_each_in(
    volume: &Volume,
    groups: Vec<GroupPart>,
    visit: &mut dyn FnMut(GroupPart),
) -> Result<(), Error> {
    let Some(first) = groups.first().map(|group| group.ag.0) else { return Ok(()) };
    let mut owned = Vec::with_capacity(groups.len());
    for group in &groups {
        owned.push(without_files(volume, *group)?);
    }
    for_each_mapping(volume, &groups, &mut |ag, record| {
        mark(&mut owned[(ag.0 - first) as usize], record.start, record.len);
    })?;
    for (group, owned) in groups.into_iter().zip(owned) {
        let mut gaps = owned.zeroes().map(|block| block as u32).peekable();
        while let Some(start) = gaps.next() {
            let mut end = start + 1;
            while gaps.next_if_eq(&end).is_some() {
                end += 1;
            }
            visit(GroupPart { start, len: end - start, ..group });
        }
    }
    Ok(())
}

/// Blocks of a group that are free, or belong to it or to the journal.
fn without_files(volume: &Volume, group: GroupPart) -> Result<FixedBitSet, Error> {
    let (geometry, GroupPart { ag, len, .. }) = (volume.geometry(), group);
    let mut owned = FixedBitSet::with_capacity(len as usize);
    mark(&mut owned, AgBlock(0), geometry.ag_header_blocks());
    let (log_group, log) = geometry.split_block(geometry.log_start);
    if log_group == ag {
        mark(&mut owned, log, geometry.log_blocks);
    }
    free_extents::<Bnobt>(volume, ag, |free| mark(&mut owned, free.start, free.len))?;
    staging_extents(volume, ag, |extent| mark(&mut owned, extent.start, extent.len))?;
    if let Some(mut guard) = volume.lock_group(ag, true)? {
        alloc::for_each_own_block(volume, guard.state(), &mut |block| mark(&mut owned, block, 1))?;
    }
    inode_chunks(volume, ag, |chunk| {
        let existing = chunk.existing();
        (0..INODES_PER_CHUNK).filter(|index| existing & 1 << index != 0).for_each(|index| {
            mark(&mut owned, block_of(geometry, AgInode(chunk.start.0.saturating_add(index))), 1);
        });
    })?;
    Ok(owned)
}

fn block_of(geometry: &Geometry, inode: AgInode) -> AgBlock {
    geometry.inode_block(inode).0
}

/// Marks blocks as owned; of a damaged structure, they may lie behind the end of the group.
fn mark(owned: &mut FixedBitSet, start: AgBlock, len: u32) {
    let end = owned.len();
    owned.insert_range((start.0 as usize).min(end)..(start.0 as usize + len as usize).min(end));
}
