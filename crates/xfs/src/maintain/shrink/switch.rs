//! The number of groups lowered, and the journal named at another place.
//!
//! No journal can carry either. So it is one sector over a clean journal. While the copies of the
//! superblock follow, the first one says that work is in progress, and no kernel mounts the volume:
//! one that did could make files in the groups that go, or log where most copies do not look.
//! `xfs_repair` makes of each moment the old state or the new one, as most copies say, and both are
//! whole: what goes is not touched before all copies are durable.

use super::size::Size;
use crate::alloc;
use crate::bytes::{put_be32, put_be64};
use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Counters, Superblock};
use crate::units::{AgBlock, AgNumber, FsBlock};
use crate::volume::{Volume, read_superblock, write_copies};
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, flush, read_exact_at, write_all_at};

/// Offsets of what changes in the superblock.
const BLOCKS: usize = 8;
const LOG_START: usize = 48;
const AG_COUNT: usize = 88;
const IN_PROGRESS: usize = 126;

/// Most bytes of a sector.
const SECTOR_MAX: usize = 32 << 10;

/// Drops the groups behind the first `groups` of a volume that is clean; they hold nothing.
///
/// # Errors
/// A header is damaged, or the device failed.
pub(super) fn drop_groups(device: &Arc<dyn BlockDevice>, groups: u32) -> Result<(), Error> {
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
    write_primary(device.as_ref(), old, |bytes| {
        put_be64(bytes, BLOCKS, new.blocks);
        put_be32(bytes, AG_COUNT, new.ag_count);
        counters.encode(bytes);
        bytes[IN_PROGRESS] = 1;
    })?;
    let Counters { inodes, free_inodes, free_blocks } = counters;
    finish(device.as_ref(), &Superblock { inodes, free_inodes, free_blocks, ..new })
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

/// Lets a volume that is clean have its journal at `start`, where its copy is.
///
/// # Errors
/// The device failed.
pub(super) fn name_journal(device: &Arc<dyn BlockDevice>, start: FsBlock) -> Result<(), Error> {
    let old = read_superblock(device)?;
    write_primary(device.as_ref(), &old, |bytes| bytes[IN_PROGRESS] = 1)?;
    finish(device.as_ref(), &Superblock { log_start: start, ..old })
}

/// Finishes a change that was interrupted, if the volume is left by one.
///
/// # Errors
/// The device failed.
pub(super) fn resume(device: &Arc<dyn BlockDevice>) -> Result<(), Error> {
    match Interrupted::find(device.as_ref())? {
        Some(Interrupted { new, .. }) => finish(device.as_ref(), &new),
        None => Ok(()),
    }
}

/// Takes a change of the number of groups back that was interrupted, while a copy of the superblock
/// still has the old one. Where none has it, and where the journal moved, it is finished instead.
///
/// # Errors
/// The device failed.
pub(super) fn undo(device: &Arc<dyn BlockDevice>) -> Result<(), Error> {
    let device = device.as_ref();
    match Interrupted::find(device)? {
        None => Ok(()),
        Some(Interrupted { new, old: None }) => finish(device, &new),
        Some(Interrupted { old: Some(old), .. }) => {
            write_copies(device, &old)?;
            let Superblock { inodes, free_inodes, free_blocks, .. } = old;
            write_primary(device, &old, |bytes| {
                put_be64(bytes, BLOCKS, old.blocks);
                put_be32(bytes, AG_COUNT, old.ag_count);
                Counters { inodes, free_inodes, free_blocks }.encode(bytes);
                bytes[IN_PROGRESS] = 0;
            })
        }
    }
}

/// A change that was interrupted.
struct Interrupted {
    /// The superblock that it makes.
    new: Superblock,
    /// The one before, if groups were to go and a copy still has them.
    old: Option<Superblock>,
}

impl Interrupted {
    /// One that the volume is left by: the first superblock says that work is in progress, and
    /// copies differ from it in sizes or the place of the journal at most.
    fn find(device: &dyn BlockDevice) -> Result<Option<Self>, Error> {
        let Some(new) = read_copy(device, Sector(0))? else { return Ok(None) };
        if !new.in_progress || new.ag_count < 2 {
            return Ok(None);
        }
        let (mut log_start, mut old) = (new.log_start, None);
        for ag in (1..new.ag_count).map(AgNumber) {
            let sector = new.geometry().header_sector(ag, 0);
            let Some(copy) = read_copy(device, sector)? else { return Ok(None) };
            // All copies of a volume whose making was interrupted are in progress.
            if copy.in_progress || copy.blocks < new.blocks || !is_same(&copy, &new) {
                return Ok(None);
            }
            if copy.log_start != new.log_start {
                log_start = copy.log_start;
            }
            if copy.ag_count > new.ag_count {
                old = Some(copy);
            }
        }
        let new = Superblock { log_start, in_progress: false, ..new };
        Ok(Some(Self { new, old }))
    }
}

/// Whether a copy of the superblock differs from the first one in what a change makes different.
fn is_same(copy: &Superblock, new: &Superblock) -> bool {
    let same = Superblock {
        blocks: new.blocks,
        ag_count: new.ag_count,
        inodes: new.inodes,
        free_inodes: new.free_inodes,
        free_blocks: new.free_blocks,
        lsn: new.lsn,
        log_start: new.log_start,
        in_progress: true,
        ..copy.clone()
    };
    same == *new
}

/// Makes all copies that stay like the first superblock, then lets the volume be used.
fn finish(device: &dyn BlockDevice, new: &Superblock) -> Result<(), Error> {
    write_copies(device, new)?;
    write_primary(device, new, |bytes| {
        put_be64(bytes, LOG_START, new.log_start.0);
        bytes[IN_PROGRESS] = 0;
    })
}

/// Changes the first superblock, and waits until that is durable.
fn write_primary(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    edit: impl FnOnce(&mut [u8]),
) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device, Sector(0), &mut bytes)?;
    edit(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, superblock.lsn, &geometry);
    write_all_at(device, Sector(0), &bytes)?;
    Ok(flush(device)?)
}

/// The superblock at a sector, if there is one.
fn read_copy(device: &dyn BlockDevice, sector: Sector) -> Result<Option<Superblock>, Error> {
    let rest = device.capacity().0.saturating_sub(sector.0).saturating_mul(512);
    let mut bytes = vec![0; (SECTOR_MAX as u64).min(rest) as usize];
    read_exact_at(device, sector, &mut bytes)?;
    Ok(Superblock::decode(&bytes).ok())
}
