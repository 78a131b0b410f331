//! Room ahead of data: a run of blocks that leaves the free space in one step, for many files.
//!
//! A bulk load puts data behind data (`ops/placement`). To take the blocks of each file out of both trees
//! was a third of its time. So a group takes a mebibyte of them where the next data goes, and hands it
//! out file by file. The rest goes back when data goes on elsewhere, when a file is too large for a room,
//! when space gets scarce and before anything is written ([`return_all`]); then the trees are as if each
//! file had taken its own.
//!
//! On a live volume there are none: after a crash nobody would own the blocks of a room.

use super::experiment;
use super::free::free_in_group;
use super::mode::{Mode, allocate_in_group};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::geometry::Geometry;
use crate::group::GroupState;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgNumber, FsBlock};
use crate::volume::Volume;

/// Bytes of a room: some sixty files of a source tree.
const ROOM_BYTES: u32 = 1 << 20;

/// Rooms that must be free besides in a group, and for each group in the volume: so that nothing is
/// refused, or goes elsewhere, for blocks that lie in rooms.
const SPARE_ROOMS: u64 = 4;

const fn room_blocks(geometry: &Geometry) -> u32 {
    ROOM_BYTES >> geometry.block_log
}

/// Blocks that must be free besides in a group.
fn spare(geometry: &Geometry) -> u64 {
    SPARE_ROOMS * u64::from(room_blocks(geometry))
}

/// `len` blocks of file data at `target`, out of the room of its group; `None` if they have to be
/// [allocated](super::allocate_best).
///
/// # Errors
/// Damaged trees or headers, or the device failed.
pub(crate) fn from_room(
    trans: &mut Transaction<'_>,
    target: FsBlock,
    len: u64,
) -> Result<Option<FsBlock>, Error> {
    let (volume, geometry) = (trans.volume(), trans.geometry());
    // Alignment, and what another search would choose, are for the allocator to decide.
    if trans.is_live() || geometry.stripe_unit > 0 || experiment::is_under_way(volume) {
        return Ok(None);
    }
    if is_scarce(volume, len) {
        return_held(trans)?;
        return Ok(None);
    }
    let (ag, start) = geometry.split_block(target);
    let found = trans.with_group(ag, true, |trans, group| {
        let is_full = u64::from(group.agf.free_blocks) < spare(geometry);
        if !is_full && take(group, start, len) {
            return Ok(true);
        }
        return_room(trans, group)?;
        // A larger file is a run of its own.
        if is_full || len > u64::from(room_blocks(geometry) / 2) {
            return Ok(false);
        }
        open_room(trans, group, start)?;
        Ok(take(group, start, len))
    })?;
    Ok(found.unwrap_or(false).then_some(target))
}

/// Gives the blocks of all rooms back to the free space if it is scarce: called where an operation may
/// take metadata blocks, before it does.
///
/// # Errors
/// As for [`from_room`].
pub(crate) fn return_if_scarce(trans: &mut Transaction<'_>) -> Result<(), Error> {
    let volume = trans.volume();
    if volume.free_space().has_rooms() && is_scarce(volume, 0) {
        return_held(trans)
    } else {
        Ok(())
    }
}

/// Gives the blocks of all rooms back to the free space.
///
/// # Errors
/// As for [`from_room`].
pub(crate) fn return_all(volume: &Volume) -> Result<(), Error> {
    if !volume.free_space().has_rooms() {
        return Ok(());
    }
    let mut trans = Transaction::new(volume, None, None);
    return_held(&mut trans)?;
    trans.commit(&mut [])
}

/// Whether blocks in rooms could be missing to a file of `len` blocks.
fn is_scarce(volume: &Volume, len: u64) -> bool {
    let geometry = volume.geometry();
    let spare = spare(geometry) * u64::from(geometry.ag_count);
    volume.free_space().available() < spare.saturating_add(len)
}

/// Gives back all rooms but those of groups that another thread holds.
fn return_held(trans: &mut Transaction<'_>) -> Result<(), Error> {
    let volume = trans.volume();
    for ag in (0..trans.geometry().ag_count).map(AgNumber) {
        if volume.free_space().has_rooms() {
            trans.with_group(ag, true, return_room)?;
        }
    }
    Ok(())
}

/// Takes blocks out of the room of a group, if it has them there.
fn take(group: &mut GroupState, start: AgBlock, len: u64) -> bool {
    let Some(room) = group.room.as_mut().filter(|room| room.start == start) else { return false };
    if u64::from(room.len) < len {
        return false;
    }
    // At most the length of the room.
    let len = len as u32;
    *room = AllocRecord { start: AgBlock(start.0 + len), len: room.len - len };
    true
}

/// Opens a room at a block, if there is enough free space behind it.
fn open_room(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
) -> Result<(), Error> {
    let most = room_blocks(trans.geometry());
    let target = trans.geometry().fs_block(group.number, start);
    let request = Request {
        min_len: (most / 2).max(1),
        user_data: true,
        owner: None,
        ..Request::metadata(target, most, RmapOwner(0))
    };
    trans.claim(most.into())?;
    let found = allocate_in_group(trans, group, &request, Mode::Exact(start))?;
    let len = found.map_or(0, |found| found.len);
    trans.unclaim(u64::from(most - len));
    if len > 0 {
        group.room = Some(AllocRecord { start, len });
        trans.volume().free_space().count_room(1);
    }
    Ok(())
}

fn return_room(trans: &mut Transaction<'_>, group: &mut GroupState) -> Result<(), Error> {
    let Some(AllocRecord { start, len }) = group.room.take() else { return Ok(()) };
    trans.volume().free_space().count_room(-1);
    if len > 0 {
        free_in_group(trans, group, start, len, None)?;
        // The transaction can have them at once, before the count of the volume tells of them.
        group.tell_less(len);
        trans.adopt(len.into());
    }
    Ok(())
}
