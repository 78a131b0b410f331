//! Data that was sent to the device: dropped where it arrived, kept or lost where it did not.

use crate::error::{Error, chain};
use crate::inode::Inode;
use crate::volume::Volume;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next write-back; none has the number 0.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number for a write-back.
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Drops data that a write-back has sent.
pub(super) fn release(inode: &Inode, number: u64) {
    let mut state = inode.write();
    let size = state.core.size;
    let Some(dirty) = &mut state.memory.dirty else { return };
    dirty.drop_sent(number);
    if dirty.is_empty() && !dirty.unstamped && dirty.stored_size >= size {
        // The space reserved for it is given back with it.
        state.memory.dirty = None;
    } else if dirty.is_empty() {
        dirty.reserved = crate::space::Reservation::default();
    }
}

/// Says why data of a file was not written. If it never can be written, the data is dropped, and
/// the reason stays with the file: dirty data that stayed would keep all writers waiting. Where it
/// may be written later, for want of space or of a lock, it stays. It also stays, to be read, on a
/// volume that is read-only.
pub(super) fn fail(volume: &Volume, inode: &Inode, error: &Error) -> Arc<str> {
    let what: Arc<str> = chain(error).into();
    let may_wait = matches!(error, Error::Busy(_) | Error::NoSpace { .. });
    if !may_wait && !volume.is_read_only() {
        let mut state = inode.write();
        // Data that is not on the device is no part of the file any more.
        if let Some(dirty) = state.memory.dirty.take() {
            state.core.size = state.core.size.min(dirty.stored_size);
        }
        state.memory.losses.add(&what);
    }
    what
}
