//! The number of groups lowered.
//!
//! No journal can carry that, nor its own new place (`journal`). So it is one sector over a clean journal. While the copies of the
//! superblock follow, the first one says that work is in progress, and no kernel mounts the volume:
//! one that did could make files in the groups that go, or log where most copies do not look.
//! `xfs_repair` makes of each moment the old state or the new one, as most copies say, and both are
//! whole: what goes is not touched before all copies are durable.

use super::size::Size;
use crate::alloc;
use crate::error::Error;
use crate::format::{Counters, Superblock};
use crate::units::{AgBlock, AgNumber};
use crate::volume::{Switch, Volume, switch, write_copies};
use std::sync::Arc;
use undercroft_block::BlockDevice;

/// Drops the groups behind the first `groups` of a volume that is clean; they hold nothing.
///
/// # Errors
/// A header is damaged, or the device failed.
pub(super) fn lower(device: &Arc<dyn BlockDevice>, groups: u32) -> Result<(), Error> {
    let volume = Volume::open_unreplayed(Arc::clone(device))?;
    let (old, geometry) = (volume.superblock(), volume.geometry());
    // Any vote gives the volume as it is.
    write_copies(device.as_ref(), old)?;
    (groups..geometry.ag_count).try_for_each(|ag| expect_empty(&volume, AgNumber(ag)))?;
    let mut counters = Counters::default();
    for ag in (0..groups).map(AgNumber) {
        // Waits, so there is a guard.
        let Some(mut guard) = volume.lock_group(ag, true)? else { continue };
        let group = guard.state();
        counters.add(&group.agf, &group.agi);
    }
    let size = Size { groups, last: geometry.ag_blocks };
    let new = size.superblock(old);
    let Counters { inodes, free_inodes, free_blocks } = counters;
    let new = Superblock { inodes, free_inodes, free_blocks, ..new };
    switch(device.as_ref(), old, &new, Switch::Groups)
}

/// Fails unless a group holds nothing but its headers, free list, trees and free inodes. One without reverse
/// mappings may hold what an interrupted move of the journal left.
fn expect_empty(volume: &Volume, ag: AgNumber) -> Result<(), Error> {
    let geometry = volume.geometry();
    if !geometry.features.rmapbt() {
        return Ok(());
    }
    // Waits, so there is a guard.
    let Some(mut guard) = volume.lock_group(ag, true)? else { return Ok(()) };
    let group = guard.state();
    let own = alloc::own_blocks_behind(volume, group, AgBlock(0))?;
    // Chunks without an inode in use go as they are.
    let chunks = group.agi.count >> geometry.inodes_per_block_log();
    let known = [group.agf.free_blocks, own, chunks, geometry.ag_header_blocks()];
    let known: u64 = known.into_iter().map(u64::from).sum();
    if known == u64::from(group.agf.length) && group.agi.count == group.agi.free_count {
        return Ok(());
    }
    let what =
        format!("group {ag} is not empty after all; the volume is sound, and has its old size");
    Err(Error::Invalid(what))
}
