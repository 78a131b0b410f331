//! A device of which some sectors are those of another.

use std::ops::Range;
use std::sync::Arc;

use rustix::io::Errno;

use super::StackError;
use super::legs::{LegPosition, Legs};
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, Sector};

/// Sectors of a [`Patchwork`] that are sectors of the other device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The first.
    pub sector: Sector,
    /// How many.
    pub count: u64,
    /// The sector of the other device that the first is.
    pub from: Sector,
}

/// A device to be read: a ground, on which patches of another device lie.
pub struct Patchwork {
    /// The ground, then the other device.
    legs: Legs,
    name: String,
    capacity: Sector,
    /// In ascending order; none overlaps another.
    patches: Vec<Patch>,
}

const GROUND: usize = 0;
const OTHER: usize = 1;

impl Patchwork {
    /// `ground` with patches of `other`, which overlap nowhere. What lies outside of either is left out.
    ///
    /// # Errors
    /// Both are one device.
    pub fn new(
        ground: Arc<dyn BlockDevice>,
        other: Arc<dyn BlockDevice>,
        mut patches: Vec<Patch>,
    ) -> Result<Self, StackError> {
        let (capacity, end) = (ground.capacity(), other.capacity());
        let legs = Legs::new(vec![ground, other])?;
        let fits = |first: Sector, count: u64, end: Sector| {
            first.0.checked_add(count).is_some_and(|behind| behind <= end.0)
        };
        patches.retain(|patch| {
            patch.count > 0
                && fits(patch.sector, patch.count, capacity)
                && fits(patch.from, patch.count, end)
        });
        patches.sort_unstable_by_key(|patch| patch.sector);
        let name = legs.name("patchwork");
        Ok(Self { legs, name, capacity, patches })
    }

    /// Where `sector` lies, which is inside the device.
    fn place(&self, sector: Sector) -> LegPosition {
        let behind = self.patches.partition_point(|patch| patch.sector <= sector);
        let before = behind.checked_sub(1).and_then(|place| self.patches.get(place));
        if let Some(patch) = before {
            let ahead = sector.0 - patch.sector.0;
            if ahead < patch.count {
                let sector = Sector(patch.from.0 + ahead);
                return LegPosition { leg: OTHER, sector, left: patch.count - ahead };
            }
        }
        let end = self.patches.get(behind).map_or(self.capacity, |patch| patch.sector);
        LegPosition { leg: GROUND, sector, left: end.0 - sector.0 }
    }
}

impl BlockDevice for Patchwork {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn limits(&self) -> Limits {
        Limits { clones_ranges: false, ..self.legs.limits() }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Patchwork {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        match bio.operation() {
            Operation::Read => self.legs.spread(bio, below, |sector| self.place(sector)),
            Operation::Flush => self.legs.flush(bio, below),
            // Not let in.
            _ => bio.fail(self.name(), Errno::ROFS.into()),
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        let mut at = sectors.start;
        while at < sectors.end {
            let LegPosition { leg, sector, left } = self.place(at);
            let count = left.min(sectors.end.0 - at.0);
            let device = &*self.legs.devices()[leg];
            let sectors = sector..Sector(sector.0 + count);
            visit(Part { device, sectors, is_written: false });
            at = Sector(at.0 + count);
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::{read_exact_at, write_all_at};

    #[test]
    fn patches_are_read_where_they_come_from() {
        let device = |first: u8| -> Arc<dyn BlockDevice> {
            let device = MemoryDevice::new(16 * 512);
            let bytes: Vec<u8> = (first..first + 16).flat_map(|sector| [sector; 512]).collect();
            write_all_at(&device, Sector(0), &bytes).unwrap();
            Arc::new(device)
        };
        let patch =
            |sector, count, from| Patch { sector: Sector(sector), count, from: Sector(from) };
        let patches = vec![
            patch(8, 2, 0),
            patch(2, 1, 15),
            patch(3, 2, 4),
            patch(15, 2, 0),
            patch(0, 1, u64::MAX),
            patch(5, 0, 0),
        ];
        let work = Patchwork::new(device(0), device(100), patches).unwrap();
        let mut bytes = [0; 16 * 512];
        read_exact_at(&work, Sector(0), &mut bytes).unwrap();
        let seen: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(seen, [0, 1, 115, 104, 105, 5, 6, 7, 100, 101, 10, 11, 12, 13, 14, 15]);
        read_exact_at(&work, Sector(4), &mut bytes[..512]).unwrap();
        assert_eq!(bytes[0], 105);
        assert!(write_all_at(&work, Sector(0), &[0; 512]).is_err());
        assert!(read_exact_at(&work, Sector(16), &mut bytes[..512]).is_err());
        let twice = device(0);
        assert!(Patchwork::new(Arc::clone(&twice), twice, Vec::new()).is_err());
    }
}
