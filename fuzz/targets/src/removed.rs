//! Removed files looked for on whole volumes with damage, and all of them copied out; what happened there.

use crate::PatchedDevice;
use crate::input::{Input, Patches};
use crate::log::ROUNDS;
use crate::sample::samples;
use std::io::{self, Write};
use std::sync::Arc;
use undercroft_image::FoundSource;
use undercroft_image::unpack::entries_to_tar;
use undercroft_recover::{Disk, Removed, Timeline};

/// Length at which an archive is given up.
pub(crate) const ARCHIVE: u64 = 8 << 20;

/// Takes this many bytes, then fails.
pub(crate) struct Sink(pub(crate) u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let sample = input.choose(samples());
    let device = Arc::new(PatchedDevice::new(sample, Patches::new(input), |_| true).into_device());
    // Inodes, the journal twice, free space; directories and maps on the way.
    device.driver().allow(ROUNDS * sample.bytes);
    let Ok(disk) = Disk::new(device.clone()) else { return };
    let Ok(removed) = Removed::find(&disk, &mut |_, _, _| {}) else { return };
    device.driver().allow(2 * ROUNDS * sample.bytes);
    let _ = Timeline::find(&disk, &mut |_, _, _| {});
    device.driver().allow(2 * sample.bytes + 2 * ARCHIVE);
    let mut source = FoundSource::new(&disk, &removed.files, |_| true);
    let _ = entries_to_tar(&mut source, &mut Sink(ARCHIVE), &mut |_| ());
}
