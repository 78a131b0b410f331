//! The checks that every device passes, whatever it does inside.
//!
//! A device's tests call [`check`] with a function that makes fresh devices. A failed check panics,
//! as an assertion in a test does. [`replay`] alone is for property tests.

mod answers;
mod data;
mod replay;

use std::sync::Arc;

pub use replay::{Step, replay};

use crate::{BlockDevice, Buffer, SECTOR_SIZE, Sector, Segment, SegmentList, read_buffer};

/// Makes a device of the given number of sectors that reads as zeroes.
pub type MakeDevice<'a> = &'a dyn Fn(Sector) -> Arc<dyn BlockDevice>;

/// Runs every check.
///
/// # Panics
/// When the device breaks its contract.
pub fn check(make: MakeDevice<'_>) {
    let suite = Suite { make, unit: Unit::of(&*make(Sector(4096))) };
    suite.histories();
    suite.check_data();
    suite.check_answers();
}

/// The smallest piece that the limits of a device allow.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Length in sectors.
    sectors: u64,
    /// What memory must be a multiple of, in bytes.
    memory: usize,
}

impl Unit {
    fn of(device: &dyn BlockDevice) -> Self {
        let limits = device.limits();
        let memory = limits.memory_alignment;
        let bytes = limits.block_bytes.max(memory as u64);
        Self { sectors: bytes.div_ceil(SECTOR_SIZE), memory }
    }

    /// The first sector of unit `index`.
    fn sector(self, index: u64) -> Sector {
        Sector(index * self.sectors)
    }

    /// Bytes of `units` units.
    fn bytes(self, units: u64) -> usize {
        (units * self.sectors * SECTOR_SIZE) as usize
    }

    /// `units` units of `byte`, cut into two segments that are no better aligned than they must be.
    fn filled(self, units: u64, byte: u8) -> SegmentList {
        let length = self.bytes(units);
        let mut buffer = Buffer::zeroed(length);
        buffer.fill(byte);
        let buffer = Arc::new(buffer);
        let middle = length / 3 / self.memory * self.memory;
        let pieces = [Segment::new(&buffer, 0..middle), Segment::new(&buffer, middle..length)];
        pieces.into_iter().collect()
    }

    /// Reads `units` units, which must all hold one byte each, and returns these.
    fn read(self, device: &dyn BlockDevice, index: u64, units: u64) -> Vec<u8> {
        let found = read_buffer(device, self.sector(index), self.bytes(units)).expect("a read");
        found
            .chunks(self.bytes(1))
            .map(|bytes| {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a unit holds mixed contents");
                bytes[0]
            })
            .collect()
    }
}

/// A kind of device under test.
struct Suite<'a> {
    make: MakeDevice<'a>,
    unit: Unit,
}

impl Suite<'_> {
    /// A fresh device of `units` units.
    fn device(&self, units: u64) -> Arc<dyn BlockDevice> {
        (self.make)(self.unit.sector(units))
    }

    /// Random histories, from a thread that leaves the device's queues to others and from one that
    /// has claimed one.
    fn histories(&self) {
        for seed in 0..16 {
            let device = self.device(256);
            let claim = (seed % 2 == 1).then(|| device.claim().expect("a queue of its own"));
            replay(&device, &replay::random_steps(seed, 400, 256));
            drop(claim);
        }
    }
}
