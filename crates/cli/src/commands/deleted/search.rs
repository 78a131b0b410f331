//! The search, with its progress.

use crate::image::ImageArgs;
use crate::progress::Progress;
use crate::report;
use anyhow::Result;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_recover::{Disk, Removed, Step};

/// The volume, and what was found on it.
pub(crate) struct Found {
    pub(crate) disk: Disk,
    pub(crate) removed: Arc<Removed>,
}

/// Looks for removed files. A journal that was not replayed is, in memory.
pub(crate) fn search(image: &ImageArgs) -> Result<Found> {
    find(image, disk(image)?)
}

/// As [`search`], on a device that is open; `present` is the same with its journal replayed.
pub(crate) fn look(
    image: &ImageArgs,
    device: Arc<dyn BlockDevice>,
    present: Arc<dyn BlockDevice>,
) -> Result<Found> {
    find(image, Disk::replayed(device, present).map_err(|error| image.explain(error.into()))?)
}

/// The volume, with its journal replayed in memory.
pub(crate) fn disk(image: &ImageArgs) -> Result<Disk> {
    let device = image.device()?;
    let replayed = image.replayed(&device).unwrap_or_else(|error| {
        // What can be found without an open volume is found.
        let name = image.name();
        report::note(format_args!("{name}: {error}; it is looked through as it is"));
        None
    });
    let present = replayed.unwrap_or_else(|| Arc::clone(&device));
    Disk::replayed(device, present).map_err(|error| image.explain(error.into()))
}

/// Shows how far a search is.
pub(crate) fn show(bar: &Progress, step: Step, done: u64, all: u64) {
    match step {
        Step::Inodes => bar.show(0, done, None),
        Step::Journal | Step::FreeSpace | Step::Device => bar.show_bytes(done, all),
    }
}

fn find(image: &ImageArgs, disk: Disk) -> Result<Found> {
    let bar = Progress::new();
    let removed = Removed::find(&disk, &mut |step, done, all| show(&bar, step, done, all));
    drop(bar);
    let removed = removed.map_err(|error| image.explain(error.into()))?;
    for (count, what) in [
        (removed.unreadable_inodes, "inodes are damaged or could not be read"),
        (removed.unreadable_sectors, "sectors of free space could not be read"),
    ] {
        if count > 0 {
            report::note(format_args!("{count} {what}"));
        }
    }
    Ok(Found { disk, removed: Arc::new(removed) })
}
