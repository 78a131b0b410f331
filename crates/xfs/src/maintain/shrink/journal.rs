//! The journal moved out of what goes.
//!
//! A clean journal is copied as it is: positions in it are relative. The new place belongs to it
//! before the superblock names it, and the old one until the superblock does not any more. The copies of
//! the superblock say so meanwhile: a crash leaves blocks that the next opening for changes frees.
//! It never moves into the first group, where its length decides the number of the root inode.

use super::allocation_limit;
use super::size::Size;
use crate::alloc::{self, Mode, Request};
use crate::error::Error;
use crate::format::{RmapOwner, Superblock};
use crate::geometry::Geometry;
use crate::log;
use crate::recovery::free_journal_blocks;
use crate::units::{AgNumber, FsBlock};
use crate::volume::{
    LiveOptions, Switch, Volume, mark_copies, read_superblock, switch, write_copies,
};
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, read_exact_at, write_all_at};

/// Bytes that are copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Whether the journal lies in what goes.
pub(super) fn is_in_tail(geometry: &Geometry, size: Size) -> bool {
    let (ag, start) = geometry.split_block(geometry.log_start);
    let end = u64::from(start.0) + u64::from(geometry.log_blocks);
    let last = size.last_group();
    ag > last || (ag == last && end > u64::from(size.last))
}

/// Blocks in the first `length` of a group that the journal leaves.
pub(super) fn leaves(geometry: &Geometry, size: Size, ag: AgNumber, length: u32) -> u32 {
    let (group, start) = geometry.split_block(geometry.log_start);
    if group != ag || !is_in_tail(geometry, size) {
        return 0;
    }
    start.0.saturating_add(geometry.log_blocks).min(length).saturating_sub(start.0)
}

/// Moves the journal of a clean volume to a `place` that is in use for nothing else, or, with none,
/// into free space that stays.
///
/// # Errors
/// No group but the first has room for it; damage; the device failed.
pub(super) fn relocate(device: &Reserved, size: Size, place: Option<FsBlock>) -> Result<(), Error> {
    let before = Volume::open(Arc::clone(device))?;
    let geometry = before.geometry().clone();
    let new = match place {
        // Any vote gives the volume as it is.
        Some(_) => mark_copies(device.as_ref(), before.superblock()).map(|()| place)?,
        None => None,
    };
    drop(before);
    let new = new.map_or_else(|| take(device, size), Ok)?;
    copy(device.as_ref(), &geometry, new)?;
    name(device, new)?;
    // Without a limit: in front of it may be no other space for the free list of the group. And what
    // is to be freed need not be looked for.
    let volume = Volume::open(Arc::clone(device))?;
    let (superblock, ends) = (volume.superblock().clone(), log::ends(device, volume.geometry())?);
    let volume = volume.into_live(&ends, &LiveOptions::default())?;
    free_journal_blocks(&volume, geometry.log_start, geometry.log_blocks)?;
    volume.close()?;
    write_copies(device.as_ref(), &superblock)
}

/// Lets a volume that is clean have its journal at `start`, where its copy is. Copies of the superblock
/// still say that it moves.
///
/// # Errors
/// The device failed.
fn name(device: &Arc<dyn BlockDevice>, start: FsBlock) -> Result<(), Error> {
    let old = read_superblock(device)?;
    let new = Superblock { log_start: start, ..old.clone() };
    switch(device.as_ref(), &old, &new, Switch::Journal)
}

/// Takes blocks for the journal in what stays.
fn take(device: &Reserved, size: Size) -> Result<FsBlock, Error> {
    let mut volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    allocation_limit::set(&mut volume, size)?;
    // Any vote gives the volume as it is.
    mark_copies(device.as_ref(), volume.superblock())?;
    let geometry = volume.geometry();
    let unit = geometry.log_stripe_unit >> geometry.block_log;
    let request = Request {
        alignment: unit.max(1),
        ..Request::metadata(FsBlock(0), geometry.log_blocks, RmapOwner::LOG)
    };
    let mut trans = volume.begin()?;
    let mut taken = None;
    for ag in (1..size.groups).map(AgNumber) {
        let found = trans.in_group(ag, |trans, group| {
            alloc::allocate_in_group(trans, group, &request, Mode::BySize)
        })?;
        if let Some(found) = found {
            taken = Some(geometry.fs_block(found.ag, found.start));
            break;
        }
    }
    trans.commit(&mut [])?;
    volume.close()?;
    let (needed, block_size) = (u64::from(geometry.log_blocks), geometry.block_size());
    taken.ok_or(Error::NoSpace { needed, block_size })
}

/// Copies the journal to its new place, and waits until that is durable.
fn copy(device: &dyn BlockDevice, geometry: &Geometry, new: FsBlock) -> Result<(), Error> {
    let bytes = u64::from(geometry.log_blocks) << geometry.block_log;
    let (from, to) = (geometry.sector(geometry.log_start), geometry.sector(new));
    let mut chunk = vec![0; CHUNK_BYTES.min(bytes) as usize];
    let mut done = 0;
    while done < bytes {
        let part = &mut chunk[..CHUNK_BYTES.min(bytes - done) as usize];
        read_exact_at(device, Sector(from.0 + done / 512), part)?;
        write_all_at(device, Sector(to.0 + done / 512), part)?;
        done += part.len() as u64;
    }
    Ok(flush(device)?)
}
