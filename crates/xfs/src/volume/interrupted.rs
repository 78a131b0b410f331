//! Changes of superblocks that no journal can carry, and what is done where one was cut.
//!
//! Such a change is one sector over a clean journal. While the copies of the superblock follow, the
//! first one says that work is in progress, and no kernel mounts the volume. An opening finishes it: for
//! changes on the device, for reading in memory.

use super::copies::{is_marked, mark_copies, write_copies};
use crate::bytes::{put_be32, put_be64};
use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Counters, Superblock};
use crate::units::AgNumber;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, flush, read_exact_at, write_all_at};

/// Offsets of what changes in the superblock.
const BLOCKS: usize = 8;
const LOG_START: usize = 48;
const AG_COUNT: usize = 88;
const IN_PROGRESS: usize = 126;

/// Most bytes of a sector.
const SECTOR_MAX: usize = 32 << 10;

/// Which superblock a volume is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// One with fewer groups.
    Groups,
    /// One that names another place of the journal. Until the old one is free, the copies
    /// [say so](super::copies::CopiesState::JournalMoving).
    Journal,
}

/// Makes `new` the superblock of a volume that is clean: fewer groups and their counters, or another
/// place of the journal.
///
/// # Errors
/// The device failed.
pub(crate) fn switch(
    device: &dyn BlockDevice,
    old: &Superblock,
    new: &Superblock,
    kind: Switch,
) -> Result<(), Error> {
    write_primary(device, old, |bytes| {
        put_be64(bytes, BLOCKS, new.blocks);
        put_be32(bytes, AG_COUNT, new.ag_count);
        if kind == Switch::Groups {
            counters(new).encode(bytes);
        }
        bytes[IN_PROGRESS] = 1;
    })?;
    complete(device, new, kind)
}

/// Makes all copies that stay like the first superblock, then lets the volume be used.
fn complete(device: &dyn BlockDevice, new: &Superblock, kind: Switch) -> Result<(), Error> {
    match kind {
        Switch::Groups => write_copies(device, new)?,
        Switch::Journal => mark_copies(device, new)?,
    }
    write_primary(device, new, |bytes| {
        put_be64(bytes, LOG_START, new.log_start.0);
        bytes[IN_PROGRESS] = 0;
    })
}

const fn counters(superblock: &Superblock) -> Counters {
    let Superblock { inodes, free_inodes, free_blocks, .. } = *superblock;
    Counters { inodes, free_inodes, free_blocks }
}

/// A change that was cut.
pub(crate) struct Interrupted {
    kind: Switch,
    /// The superblock that it makes.
    new: Superblock,
    /// The one before, if groups were to go and a copy still has them.
    old: Option<Superblock>,
}

impl Interrupted {
    /// One that the volume is left by: the first superblock says that work is in progress, and
    /// copies differ from it in sizes or the place of the journal at most.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn find(device: &dyn BlockDevice) -> Result<Option<Self>, Error> {
        let Some(new) = read_copy(device, Sector(0))? else { return Ok(None) };
        if !new.in_progress || new.ag_count < 2 {
            return Ok(None);
        }
        let (mut log_start, mut old, mut kind) = (new.log_start, None, Switch::Groups);
        for ag in (1..new.ag_count).map(AgNumber) {
            let sector = new.geometry().header_sector(ag, 0);
            let Some(copy) = read_copy(device, sector)? else { return Ok(None) };
            // All copies of a volume whose making was interrupted are in progress.
            if copy.in_progress || copy.blocks < new.blocks || !is_same(&copy, &new) {
                return Ok(None);
            }
            if is_marked(&copy) {
                kind = Switch::Journal;
            }
            if copy.log_start != new.log_start {
                log_start = copy.log_start;
            }
            if copy.ag_count > new.ag_count {
                old = Some(copy);
            }
        }
        let new = Superblock { log_start, in_progress: false, ..new };
        Ok(Some(Self { kind, new, old }))
    }

    /// Finishes it.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn finish(&self, device: &dyn BlockDevice) -> Result<(), Error> {
        complete(device, &self.new, self.kind)
    }

    /// Takes a change of the number of groups back while a copy of the superblock still has the old
    /// one. Where none has it, and where the journal moved, it is finished instead.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn undo(&self, device: &dyn BlockDevice) -> Result<(), Error> {
        let Some(old) = &self.old else { return self.finish(device) };
        write_copies(device, old)?;
        write_primary(device, old, |bytes| {
            put_be64(bytes, BLOCKS, old.blocks);
            put_be32(bytes, AG_COUNT, old.ag_count);
            counters(old).encode(bytes);
            bytes[IN_PROGRESS] = 0;
        })
    }
}

/// Finishes the change that keeps a volume from being opened; where none does, returns the `error` of
/// that.
///
/// # Errors
/// That one; the device failed.
pub(crate) fn finish_interrupted(device: &Arc<dyn BlockDevice>, error: Error) -> Result<(), Error> {
    // A device that fails is not asked again: each answer may take as long as it may.
    if matches!(error, Error::Device(_)) {
        return Err(error);
    }
    match Interrupted::find(device.as_ref()) {
        Ok(Some(change)) if !device.is_read_only() => change.finish(device.as_ref()),
        _ => Err(error),
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
