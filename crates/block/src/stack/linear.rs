//! Devices one after the other.

use std::ops::Range;
use std::sync::Arc;

use super::StackError;
use super::legs::{LegPosition, Legs};
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, Sector};

/// The legs, of any sizes, as one device: first all of the first, then all of the second, ...
///
/// A rest of a leg that is less than the largest block size of any leg is left out.
pub struct Linear {
    legs: Legs,
    name: String,
    /// Where each leg starts, then where the last one ends: one more than legs, ascending.
    bounds: Box<[Sector]>,
}

impl Linear {
    /// The concatenation of `legs`.
    ///
    /// # Errors
    /// Without legs, with one sector of a device in two of them, or when the sum of their sizes is
    /// more than a device can have.
    pub fn new(legs: Vec<Arc<dyn BlockDevice>>) -> Result<Self, StackError> {
        let legs = Legs::new(legs)?;
        let name = legs.name("linear");
        let mut bounds = vec![Sector::ZERO];
        let mut end = Sector::ZERO;
        for capacity in legs.capacities(legs.limits().block_bytes) {
            end = end.checked_add(capacity).ok_or(StackError::TooLarge)?;
            bounds.push(end);
        }
        Ok(Self { legs, name, bounds: bounds.into() })
    }

    /// Where `sector` lies, which is inside the device.
    fn place(&self, sector: Sector) -> LegPosition {
        // The first bound is zero, so there is one before the first that is larger. Legs without
        // sectors start where the next one does and are passed over.
        let leg = self.bounds.partition_point(|bound| *bound <= sector) - 1;
        let (start, end) = (self.bounds[leg], self.bounds[leg + 1]);
        LegPosition { leg, sector: Sector(sector.0 - start.0), left: end.0 - sector.0 }
    }
}

impl BlockDevice for Linear {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.bounds[self.bounds.len() - 1]
    }

    fn limits(&self) -> Limits {
        self.legs.limits()
    }

    fn is_read_only(&self) -> bool {
        self.legs.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Linear {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        if bio.operation() == Operation::Flush {
            return self.legs.flush(bio, below);
        }
        self.legs.spread(bio, below, |sector| self.place(sector));
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        for (device, bounds) in self.legs.devices().iter().zip(self.bounds.windows(2)) {
            let (start, end) = (bounds[0].max(sectors.start), bounds[1].min(sectors.end));
            if start < end {
                let sectors = Sector(start.0 - bounds[0].0)..Sector(end.0 - bounds[0].0);
                visit(Part { device: &**device, sectors, is_written: true });
            }
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Reason;
    use crate::drivers::MemoryDevice;
    use crate::testing::{Fault, FaultyDevice};
    use crate::{read_exact_at, write_all_at};

    fn memory(sectors: u64) -> Arc<dyn BlockDevice> {
        Arc::new(MemoryDevice::new(sectors * 512))
    }

    #[test]
    fn legs_follow_each_other() {
        let legs = [memory(3), memory(0), memory(1), memory(4)];
        let device = Linear::new(legs.to_vec()).unwrap();
        assert_eq!(device.capacity(), Sector(8));
        assert_eq!(device.name(), "linear(memory,memory,memory,memory)");
        let sectors: Vec<u8> = (1..=7).flat_map(|sector| [sector; 512]).collect();
        write_all_at(&device, Sector(1), &sectors).unwrap();
        for (leg, sector, expected) in [(0, 2, 2), (2, 0, 3), (3, 0, 4), (3, 3, 7)] {
            let mut bytes = [0; 512];
            read_exact_at(&*legs[leg], Sector(sector), &mut bytes).unwrap();
            assert_eq!(bytes, [expected; 512]);
        }
        let mut all = [0; 8 * 512];
        read_exact_at(&device, Sector(0), &mut all).unwrap();
        assert_eq!(all[512..], sectors);
        let error = write_all_at(&device, Sector(7), &[0; 1024]).unwrap_err();
        assert!(matches!(error.reason, Reason::OutOfRange { capacity: Sector(8) }));
    }

    #[test]
    fn an_error_of_a_leg_has_the_addresses_of_the_submitter() {
        let faulty = FaultyDevice::new(memory(4), [Fault::new()]);
        let device = Linear::new(vec![memory(4), Arc::new(faulty)]).unwrap();
        let error = write_all_at(&device, Sector(2), &[0; 2048]).unwrap_err();
        assert_eq!((error.sector, error.length), (Sector(2), 2048));
    }

    #[test]
    fn impossible_devices_are_refused() {
        assert!(matches!(Linear::new(Vec::new()), Err(StackError::NoLegs)));
        let largest = memory(Sector::MAX.0);
        assert!(matches!(Linear::new(vec![largest, memory(1)]), Err(StackError::TooLarge)));
    }
}
