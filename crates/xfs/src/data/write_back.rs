//! Dirty data on its way to the device.

use crate::error::Error;
use crate::inode::{DataLock, Inode, InodeState};
use crate::ops::FileEdit;
use crate::volume::Volume;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use undercroft_block::{Batch, Plug};

/// What the file of a ticket is to be complete in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Data and inode.
    All,
    /// Data, and what is needed to read it.
    Data,
}

/// Number of the next write-back; none has the number 0.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Sends the dirty data of these files to the device, under one plug, and commits what it maps. It
/// is durable with the checkpoint that is open afterwards, or one before. On an error the volume is
/// poisoned: what was accepted is lost.
pub(super) fn write_back<'i>(
    volume: &Volume,
    files: impl Iterator<Item = (&'i Arc<Inode>, Extent)> + Clone,
) -> Result<(), Error> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let plug = Plug::new(volume.cache().device());
    let writes = Batch::new();
    let mut result = Ok(());
    for (inode, extent) in files.clone() {
        if inode.read().dirty.is_none() {
            continue;
        }
        let lock = InodeState::lock_data(inode);
        result = write_one(volume, inode, lock, extent, &writes, number);
        if let Err(error) = &result {
            volume.poison(&format!("data of a file could not be written: {error}"));
            break;
        }
    }
    // From here on the device has it, whoever reads.
    drop(plug);
    for (inode, _) in files {
        release(volume, inode, number, result.is_err());
    }
    result
}

/// Sends the dirty data of a file, whose data the caller has locked, to the device: for operations
/// that work on what is mapped.
pub(crate) fn settle(
    volume: &Volume,
    inode: &Arc<Inode>,
    lock: DataLock,
) -> Result<DataLock, Error> {
    if inode.read().dirty.is_none() {
        return Ok(lock);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = inode.read().dirty.as_ref().map_or_else(Default::default, |dirty| dirty.modified);
    let mut edit = FileEdit::plugged(volume, Arc::clone(inode), lock, now, Batch::new())?;
    edit.write_back(number, true)?;
    let lock = edit.into_lock();
    release(volume, inode, number, false);
    Ok(lock)
}

fn write_one(
    volume: &Volume,
    inode: &Arc<Inode>,
    lock: DataLock,
    extent: Extent,
    writes: &Batch,
    number: u64,
) -> Result<(), Error> {
    let state = inode.read();
    let Some(dirty) = &state.dirty else { return Ok(()) };
    if state.core.mode == 0 {
        // The file was removed.
        return Ok(());
    }
    let now = dirty.modified;
    drop(state);
    let mut edit = FileEdit::plugged(volume, Arc::clone(inode), lock, now, writes.clone())?;
    match edit.write_back(number, extent == Extent::All) {
        // Removed meanwhile.
        Err(Error::Stale { .. }) => Ok(()),
        other => other,
    }
}

/// Drops what a write-back has sent, or everything.
fn release(volume: &Volume, inode: &Inode, number: u64, all: bool) {
    let mut state = inode.write();
    let gone = all || state.core.mode == 0;
    let size = state.core.size;
    let Some(dirty) = &mut state.dirty else { return };
    dirty.drop_sent(number);
    if gone || dirty.is_empty() {
        volume.release_ahead(std::mem::take(&mut dirty.reserved));
        if gone || !(dirty.unstamped || dirty.stored_size < size) {
            state.dirty = None;
        }
    }
}
