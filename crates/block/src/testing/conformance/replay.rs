//! Random histories, compared with a plain array.

use std::sync::Arc;

use super::unit::Unit;
use crate::testing::mix;
use crate::{Batch, Bio, BlockDevice, Buffer, Plug, Sector, Waiter, read_buffer};

/// One step of a random history, for [`replay`]. Places and lengths are
/// in the unit of the device: a sector, or more if its limits ask for it. Ranges beyond the device are
/// cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write `sectors` sectors of `byte` to `sector` on.
    Write {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
        /// What every byte becomes.
        byte: u8,
    },
    /// Read, and compare with what the steps before wrote.
    Read {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
    },
    /// Write zeroes.
    WriteZeroes {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
    },
    /// Submit a flush bio.
    Flush,
    /// Hand over what the plug staged.
    Unplug,
}

/// Applies `steps` through one plug and compares every read, and the end, with a plain array.
/// Reads wait until all steps are submitted, so they also check the order of overlapping bios.
///
/// # Panics
/// When a read differs or an operation fails.
pub fn replay(device: &Arc<dyn BlockDevice>, steps: &[Step]) {
    let unit = Unit::of(&**device);
    let units = device.capacity().0 / unit.sectors;
    let mut model = vec![0; unit.bytes(units)];
    let plug = Plug::new(device);
    let batch = Batch::new();
    let mut reads: Vec<(Waiter, Vec<u8>)> = Vec::new();
    let cut = |start: u64, count: u64| {
        let start = start.min(units);
        (start, (start + count).min(units))
    };
    for step in steps {
        match *step {
            Step::Write { sector, sectors, byte } => {
                let (start, end) = cut(sector, sectors);
                model[unit.bytes(start)..unit.bytes(end)].fill(byte);
                let bio = Bio::write(unit.sector(start), unit.filled(end - start, byte));
                plug.submit(bio.in_batch(&batch));
            }
            Step::Read { sector, sectors } => {
                let (start, end) = cut(sector, sectors);
                let buffer = Buffer::copy_of(&vec![0xee; unit.bytes(end - start)]);
                let (bio, waiter) = Bio::read(unit.sector(start), buffer).waited();
                plug.submit(bio);
                reads.push((waiter, model[unit.bytes(start)..unit.bytes(end)].to_vec()));
            }
            Step::WriteZeroes { sector, sectors } => {
                let (start, end) = cut(sector, sectors);
                model[unit.bytes(start)..unit.bytes(end)].fill(0);
                let length = unit.bytes(end - start) as u64;
                plug.submit(Bio::write_zeroes(unit.sector(start), length).in_batch(&batch));
            }
            Step::Flush => plug.submit(Bio::flush().in_batch(&batch)),
            Step::Unplug => plug.flush(),
        }
    }
    for (waiter, expected) in reads {
        let found = waiter.wait().into_buffer().expect("a read inside the device");
        assert!(found[..] == expected[..], "a read differs from what was written before it");
    }
    batch.wait().expect("operations inside the device");
    let found = read_buffer(&**device, Sector(0), model.len()).expect("a read of all");
    assert!(found[..] == model[..], "the contents differ from what was written");
}

/// `count` steps on a device of `units` units, the same for the same seed.
pub(super) fn random_steps(seed: u64, count: u64, units: u64) -> Vec<Step> {
    let step = |index| {
        let random = mix(seed ^ mix(index));
        let (sector, byte) = ((random >> 8) % units, random as u8);
        let sectors = 1 + (random >> 32) % 9;
        match (random >> 48) % 16 {
            0 => Step::Flush,
            1 => Step::Unplug,
            2 | 3 => Step::WriteZeroes { sector, sectors },
            4..=7 => Step::Read { sector, sectors },
            _ => Step::Write { sector, sectors, byte },
        }
    };
    (0..count).map(step).collect()
}
