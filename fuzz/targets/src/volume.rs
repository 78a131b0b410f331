//! Whole volumes with damage: opened, described, walked, unpacked, checked.

use crate::input::{Input, Patches};
use crate::log::ROUNDS;
use crate::sample::samples;
use crate::{PatchedDevice, visit};
use std::io::{self, Write};
use std::sync::Arc;
use undercroft_image::unpack::to_tar;
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};

/// Length at which an archive of a volume is given up: its files may all be as large as it is.
const ARCHIVE: u64 = 8 << 20;

/// Takes this many bytes, then fails.
struct Sink(u64);

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
    let intact = input.0.is_empty();
    let device = Arc::new(PatchedDevice::new(sample, Patches::new(input), |_| true).into_device());
    device.driver().allow(ROUNDS * sample.bytes);
    match Volume::open(device.clone()) {
        Ok(volume) => {
            let volume = Arc::new(volume);
            drop(volume.log_state().map_err(|error| error.to_string()));
            // No step reads a block twice for long: blocks read are kept.
            visit::tree(&volume, device.driver(), 2 * sample.bytes);
            device.driver().allow(2 * sample.bytes + 2 * ARCHIVE);
            let unpacked = to_tar(&volume, &mut Sink(ARCHIVE), &mut |_| ());
            if let Err(error) = unpacked.as_ref() {
                assert!(!intact, "a sound volume cannot be unpacked: {error}");
            }
        }
        Err(error) => drop(error.to_string()),
    }
    // No block is followed twice as metadata; superblocks, groups and comparisons are read on top.
    device.driver().allow((ROUNDS + 4) * sample.bytes);
    let options = CheckOptions { threads: 1, findings_max: 1000, replay: true };
    let mut findings = Vec::new();
    let report = check(device, &options, &mut |finding| findings.push(finding.to_string()));
    match report {
        Ok(report) if intact => assert!(report.is_clean(), "a sound volume: {findings:?}"),
        Ok(_) => {}
        Err(error) => drop(error.to_string()),
    }
}
