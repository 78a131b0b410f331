//! The unit of a device under test.

use std::sync::Arc;

use crate::{BlockDevice, Buffer, SECTOR_SIZE, Sector, Segment, SegmentList, read_buffer};

/// The smallest piece that the limits of a device allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// Length in sectors.
    pub(super) sectors: u64,
    /// What memory must be a multiple of, in bytes.
    pub(super) memory: usize,
}

impl Unit {
    pub(super) fn of(device: &dyn BlockDevice) -> Self {
        let limits = device.limits();
        let memory = limits.memory_alignment;
        let bytes = limits.block_bytes.max(memory as u64);
        Self { sectors: bytes.div_ceil(SECTOR_SIZE), memory }
    }

    /// The first sector of unit `index`.
    pub(super) fn sector(self, index: u64) -> Sector {
        Sector(index * self.sectors)
    }

    /// Bytes of `units` units.
    pub(super) fn bytes(self, units: u64) -> usize {
        (units * self.sectors * SECTOR_SIZE) as usize
    }

    /// `units` units of `byte`, cut into two segments that are no better aligned than they must be.
    pub(super) fn filled(self, units: u64, byte: u8) -> SegmentList {
        let length = self.bytes(units);
        let mut buffer = Buffer::zeroed(length);
        buffer.fill(byte);
        let buffer = Arc::new(buffer);
        let middle = length / 3 / self.memory * self.memory;
        let pieces = [Segment::new(&buffer, 0..middle), Segment::new(&buffer, middle..length)];
        pieces.into_iter().collect()
    }

    /// Reads `units` units, which must all hold one byte each, and returns these.
    pub(super) fn read(self, device: &dyn BlockDevice, index: u64, units: u64) -> Vec<u8> {
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
