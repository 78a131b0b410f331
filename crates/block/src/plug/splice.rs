//! Writes whose bytes are outside of the memory of this process: in a pipe, most often, from where
//! `splice` takes them to a file with one copy less.

use std::fs::File;

use super::screen::screen;
use crate::bio::{Bio, BlockError, Splice};
use crate::device::{BlockDevice, Layer};
use crate::threads::plugged;
use crate::units::Sector;

/// The place to which [`splice_at`] would have `length` bytes moved from `sector` on, if the device took them
/// now: it is a leaf over a file whose page cache has all of the range, in whole pages.
#[must_use]
pub fn splice_target(device: &dyn BlockDevice, sector: Sector, length: u64) -> Option<&File> {
    match device.layer() {
        Layer::Leaf(queue) => queue.splice_target(sector, length),
        Layer::Stacked(_) => None,
    }
}

/// Writes `length` bytes (whole sectors) from `sector` on, which `splice` moves to the file of the
/// device in this thread; past any plug, but after what the plugs of this thread hold. Counts, and
/// keeps its order, as any write.
///
/// `None` if the device [does not take them](splice_target), is frozen, has other requests for the
/// sectors under way, or if the first call of `splice` fails: then nothing was moved, and the bytes
/// have to come to memory and be submitted as a bio.
///
/// # Errors
/// The error of a later call. Some of the bytes were written, and some may still be where they were.
pub fn splice_at(
    device: &dyn BlockDevice,
    sector: Sector,
    length: u64,
    splice: &mut Splice<'_>,
) -> Option<Result<(), BlockError>> {
    let Layer::Leaf(queue) = device.layer() else { return None };
    plugged::send();
    let (bio, waiter) = Bio::write_elsewhere(sector, length).waited();
    let Some(bio) = screen(bio, device) else { return Some(waiter.wait().result) };
    queue.splice(bio, splice).then(|| waiter.wait().result)
}
