//! A volume made smaller in place: docs/decisions/shrink.md.
//!
//! What lies behind the new end is looked at ([`tail_contents`]) and moved; then whole groups are dropped
//! ([`group_count`]) and the last one becomes short ([`last_group`]). Each step leaves a sound volume.

mod allocation_limit;
mod capacity;
mod contents;
mod destination;
mod file_block;
mod file_data;
mod group_count;
mod inodes;
mod journal;
mod last_group;
mod mappings;
mod own_blocks;
mod plan;
mod size;
mod tail_contents;

pub use plan::{ShrinkOptions, ShrinkTarget, Shrinkage};
pub use tail_contents::{Amount, Obstacle};

use crate::error::Error;
use crate::recovery::{self, Leftovers};
use crate::volume::{Interrupted, LiveOptions, Volume};
use plan::Plan;
use size::Size;
use std::sync::Arc;
use tail_contents::TailContents;
use undercroft_block::{BlockDevice, Reserved};

/// What [`shrink`] would do.
///
/// # Errors
/// The size is impossible whatever the volume holds; it cannot be changed, as for
/// [`Volume::open_live`], it is damaged; the device failed.
pub fn shrinkage(volume: &Volume, options: ShrinkOptions) -> Result<Shrinkage, Error> {
    Ok(Plan::new(volume, options)?.shrinkage)
}

/// Makes the volume on `device`, which must not be open, smaller. The device stays as long as it is.
/// A shrink that was interrupted goes on when it is asked for again. `progress` is told the bytes
/// moved, and those to move.
///
/// # Errors
/// As [`shrinkage`]; something is in the way, which the message names: nothing is changed then.
pub fn shrink(
    device: &Arc<dyn BlockDevice>,
    options: ShrinkOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Shrinkage, Error> {
    shrink_reserved(&Reserved::new(Arc::clone(device))?, options, progress)
}

fn shrink_reserved(
    device: &Reserved,
    options: ShrinkOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Shrinkage, Error> {
    // Its journal is replayed by that, if there is something to replay, and a change that was cut
    // between two superblocks is finished.
    let volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    // A kernel that did not end well left them, and replay frees them; not so where the journal was
    // emptied by another program. Kernels do not look for them then.
    recovery::free_staging(&volume)?;
    volume.close()?;
    let volume = Volume::open(Arc::clone(device))?;
    let plan = Plan::new(&volume, options)?;
    plan.check(volume.geometry().block_log)?;
    let Plan { size, shrinkage, mut leftovers } = plan;
    let geometry = volume.geometry().clone();
    drop(volume);
    // It needs the longest piece.
    if journal::is_in_tail(&geometry, size) {
        let place = leftovers.place(&geometry, |ag, end| size.holds(&geometry, ag, end));
        place.iter().for_each(|place| leftovers.forget(*place));
        journal::relocate(device, size, place)?;
    }
    let inode_size = geometry.inode_size() as u64;
    let moving = (shrinkage.data.blocks + shrinkage.metadata.blocks) << geometry.block_log;
    let moving = moving + shrinkage.inodes * inode_size;
    let mut done = 0;
    move_out(device, size, &leftovers, &mut |moved| {
        done += match moved {
            Moved::Blocks(blocks) => blocks << geometry.block_log,
            Moved::Inode => inode_size,
        };
        progress(done, moving.max(done));
    })?;
    if size.groups < geometry.ag_count {
        group_count::lower(device, size.groups)?;
    }
    last_group::shorten(device, size)?;
    Ok(shrinkage)
}

/// Makes the volume on `device`, which must not be open, as small as it can be, as [`shrink()`] does:
/// until nothing is gained any more, as a plan has to allow for more than moves. Returns all that was
/// done.
///
/// # Errors
/// As [`shrink()`].
pub fn minimise(
    device: &Arc<dyn BlockDevice>,
    keep_inode_numbers: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Shrinkage, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let options = ShrinkOptions { target: ShrinkTarget::Smallest, keep_inode_numbers };
    let mut all = shrink_reserved(device, options, progress)?;
    loop {
        let next = shrinkage(&Volume::open(Arc::clone(device))?, options)?;
        if next.blocks >= all.blocks || !next.obstacles.is_empty() {
            return Ok(all);
        }
        all.add(&shrink_reserved(device, options, progress)?);
    }
}

/// Gives up a shrink that was interrupted: the groups that were to go are there as before, and what
/// moved stays where it is. One that has lowered the number of groups in all copies of the
/// superblock is past that: [`grow`](super::grow()) makes the volume as large as before. On a volume
/// that no shrink was interrupted on, only the journal is replayed.
///
/// # Errors
/// As for [`Volume::open_live`].
pub fn abandon_shrink(device: &Arc<dyn BlockDevice>) -> Result<Abandoned, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let change = Interrupted::find(device.as_ref())?;
    if let Some(change) = &change {
        change.undo(device.as_ref())?;
    }
    let left = Leftovers::of(&Volume::open(Arc::clone(device))?)?;
    free_leftovers(device)?;
    Ok(Abandoned { was_cut: change.is_some(), freed_blocks: left.blocks() })
}

/// Frees the blocks that the journal of a shrink which was interrupted had taken, also where the
/// volume does not say that it moved; returns how many. Only reverse mappings are looked at: without
/// them, nothing is freed.
///
/// # Errors
/// As for [`Volume::open_live`].
pub fn free_left_journal(device: &Arc<dyn BlockDevice>) -> Result<u64, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let volume = Volume::open(Arc::clone(device))?;
    if !volume.geometry().features.rmapbt() {
        return Ok(0);
    }
    let left = Leftovers::of(&volume)?.blocks();
    drop(volume);
    if left > 0 {
        free_leftovers(device)?;
    }
    Ok(left)
}

fn free_leftovers(device: &Reserved) -> Result<(), Error> {
    // Its journal is replayed by that, and the rest is done if the volume says itself that it is left.
    let volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    Leftovers::of(&volume)?.free(&volume)?;
    volume.close()
}

/// What [`abandon_shrink`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abandoned {
    /// A shrink was cut between two superblocks, so that no kernel mounted the volume.
    pub was_cut: bool,
    /// Blocks that a journal on its way had taken, and that are free again.
    pub freed_blocks: u64,
}

/// A step of moving everything out of what goes.
enum Moved {
    Blocks(u64),
    Inode,
}

/// Frees what an earlier shrink left, moves everything out of what goes, and sees to it that nothing is
/// left there. Inodes go first, so that contents come to lie near them.
fn move_out(
    device: &Reserved,
    size: Size,
    leftovers: &Leftovers,
    moved: &mut dyn FnMut(Moved),
) -> Result<(), Error> {
    let mut volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    leftovers.free(&volume)?;
    allocation_limit::set(&mut volume, size)?;
    // First, as what moves could take all space in the group, and its free list needs some.
    own_blocks::move_out(&volume, size)?;
    inodes::move_out(&volume, size, &mut || moved(Moved::Inode))?;
    contents::move_out(&volume, size, &mut |blocks| moved(Moved::Blocks(blocks)))?;
    // Again, as all that moves changes the trees.
    own_blocks::move_out(&volume, size)?;
    let left = TailContents::of(&volume, size, true)?;
    let moving = left.data.blocks + left.metadata.blocks;
    volume.close()?;
    match left.obstacles.first() {
        None if moving == 0 => Ok(()),
        None => Err(Error::Invalid("contents of files came back to what goes".into())),
        Some(obstacle) => Err(Error::Invalid(format!(
            "while files moved, a structure of the volume grew into what goes, or did not leave it: \
             {obstacle}; the volume is sound, and has its old size"
        ))),
    }
}
