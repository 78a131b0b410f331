//! Whole volumes with damage scanned and salvaged, and all that is found copied out.

use crate::PatchedDevice;
use crate::input::{Input, Patches};
use crate::log::ROUNDS;
use crate::removed::{ARCHIVE, Sink};
use crate::sample::samples;
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_image::FoundSource;
use undercroft_image::unpack::entries_to_tar;
use undercroft_recover::{Salvaged, Scan};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let sample = input.choose(samples());
    let device = Arc::new(PatchedDevice::new(sample, Patches::new(input), |_| true).into_device());
    // The scan once; what it found, once more, and maps and values on the way.
    device.driver().allow(ROUNDS * sample.bytes);
    let whole: Arc<dyn BlockDevice> = device.clone();
    let all: Vec<_> = std::iter::once(0..whole.capacity().0).collect();
    let scan = Scan::read(&whole, &all, &mut |_, _, _| {});
    for traces in scan.volumes.iter().take(2) {
        let found = Salvaged::find(&whole, &scan, traces, &mut |_, _, _| {});
        let Ok((disk, salvaged)) = found else { continue };
        device.driver().allow(2 * sample.bytes + 2 * ARCHIVE);
        let mut source = FoundSource::new(&disk, &salvaged.files, |_| true);
        let _ = entries_to_tar(&mut source, &mut Sink(ARCHIVE), &mut |_| ());
    }
}
