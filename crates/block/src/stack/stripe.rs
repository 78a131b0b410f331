//! Devices in turn, chunk by chunk.

use std::ops::Range;
use std::sync::Arc;

use super::StackError;
use super::bytes::Size;
use super::legs::{LegPosition, Legs};
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// The legs in turn: the first chunk of the device is on the first leg, the second on the second,
/// ... and after the last leg comes the second chunk of the first.
///
/// Of legs of unequal size, as much is used as the smallest has, in whole chunks.
pub struct Stripe {
    legs: Legs,
    name: String,
    layout: Layout,
    capacity: Sector,
}

/// Where which sector is.
#[derive(Clone, Copy, Debug)]
struct Layout {
    legs: u64,
    /// Sectors in a chunk, as a power of two.
    chunk_shift: u32,
    /// The same for `legs`, if it is a power of two: a division costs as much as all else here.
    legs_shift: Option<u32>,
}

impl Stripe {
    /// A stripe with chunks of `chunk` bytes on `legs`.
    ///
    /// # Errors
    /// Without legs, with one sector of a device in two of them, when [`is_chunk`](Self::is_chunk)
    /// says no or a leg has larger blocks, or when the sum of the sizes is more than a device can have.
    pub fn new(chunk: u64, legs: Vec<Arc<dyn BlockDevice>>) -> Result<Self, StackError> {
        let legs = Legs::new(legs)?;
        let block = legs.limits().block_bytes;
        if !Self::is_chunk(chunk) || !chunk.is_multiple_of(block) {
            return Err(StackError::Chunk { chunk, block });
        }
        let count = legs.devices().len() as u64;
        let smallest = legs.capacities(chunk).min().ok_or(StackError::NoLegs)?;
        let capacity = smallest.0.checked_mul(count).filter(|sectors| *sectors <= Sector::MAX.0);
        Ok(Self {
            name: legs.name(&format!("stripe:{}", Size(chunk))),
            layout: Layout::new(chunk, count),
            capacity: Sector(capacity.ok_or(StackError::TooLarge)?),
            legs,
        })
    }

    /// Whether a stripe may have chunks of `bytes` bytes: a power of two from 4 KiB to 1 GiB.
    #[must_use]
    pub const fn is_chunk(bytes: u64) -> bool {
        bytes.is_power_of_two() && bytes >= 4 << 10 && bytes <= 1 << 30
    }

    /// Hands an operation without memory, however long, to each leg once.
    fn map_range<'d>(&'d self, mut bio: Bio, end: Sector, below: &mut Below<'d>) {
        let sectors = bio.sector()..end;
        let parts = (0..self.layout.legs).zip(self.legs.devices());
        let mut parts = parts
            .map(|(leg, device)| (self.layout.on_leg(leg, &sectors), device))
            .filter(|(part, _)| !part.is_empty());
        // An empty operation does not come here, so there is a part.
        let Some((last, device)) = parts.next() else { return bio.succeed() };
        for (part, device) in parts {
            let mut twin = bio.twin();
            twin.reshape(part);
            below.submit(&**device, twin);
        }
        bio.reshape(last);
        below.submit(&**device, bio);
    }
}

impl Layout {
    fn new(chunk: u64, legs: u64) -> Self {
        Self {
            legs,
            chunk_shift: (chunk / SECTOR_SIZE).trailing_zeros(),
            legs_shift: legs.is_power_of_two().then_some(legs.trailing_zeros()),
        }
    }

    /// The leg that holds `sector`, and where on it.
    #[inline]
    fn locate(&self, sector: u64) -> (u64, u64) {
        let chunk = sector >> self.chunk_shift;
        let (row, leg) = match self.legs_shift {
            Some(shift) => (chunk >> shift, chunk & (self.legs - 1)),
            None => (chunk / self.legs, chunk % self.legs),
        };
        (leg, (row << self.chunk_shift) + self.inside(sector))
    }

    /// Sectors before `sector` in its chunk.
    fn inside(&self, sector: u64) -> u64 {
        sector & ((1 << self.chunk_shift) - 1)
    }

    /// Where `sector` lies, and the rest of its chunk.
    #[inline]
    fn place(&self, sector: Sector) -> LegPosition {
        let (leg, at) = self.locate(sector.0);
        let left = (1 << self.chunk_shift) - self.inside(sector.0);
        LegPosition { leg: leg as usize, sector: Sector(at), left }
    }

    /// The sectors of `leg` that hold some of `sectors`: one range, since chunks that follow each
    /// other on a leg are a row apart on the device.
    fn on_leg(&self, leg: u64, sectors: &Range<Sector>) -> Range<Sector> {
        // The first sector of the leg that holds one at or behind `sector` of the device.
        let bound = |sector: u64| {
            let (here, at) = self.locate(sector);
            let row = at - self.inside(sector);
            match here.cmp(&leg) {
                std::cmp::Ordering::Less => row,
                std::cmp::Ordering::Equal => at,
                std::cmp::Ordering::Greater => row + (1 << self.chunk_shift),
            }
        };
        Sector(bound(sectors.start.0))..Sector(bound(sectors.end.0))
    }
}

impl BlockDevice for Stripe {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
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

impl Stacked for Stripe {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        match (bio.operation(), bio.end()) {
            (Operation::Flush, _) => self.legs.flush(bio, below),
            (Operation::Discard | Operation::WriteZeroes, Some(end)) => {
                self.map_range(bio, end, below);
            }
            _ => self.legs.spread(bio, below, |sector| self.layout.place(sector)),
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        for (leg, device) in (0..self.layout.legs).zip(self.legs.devices()) {
            let sectors = self.layout.on_leg(leg, &sectors);
            visit(Part { device: &**device, sectors, is_written: true });
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::{Batch, Plug, read_exact_at, write_all_at};

    fn memory(sectors: u64) -> Arc<dyn BlockDevice> {
        Arc::new(MemoryDevice::new(sectors * 512))
    }

    #[test]
    fn chunks_take_turns() {
        let legs = [memory(17), memory(40), memory(16)];
        let device = Stripe::new(4096, legs.to_vec()).unwrap();
        assert_eq!(device.capacity(), Sector(48));
        assert_eq!(device.name(), "stripe:4k(memory,memory,memory)");
        let sectors: Vec<u8> = (0..48).flat_map(|sector| [sector; 512]).collect();
        write_all_at(&device, Sector(0), &sectors).unwrap();
        for (number, leg) in legs.iter().enumerate() {
            let mut bytes = [0; 16 * 512];
            read_exact_at(&**leg, Sector(0), &mut bytes).unwrap();
            let chunks = [number, number + 3].map(|chunk| &sectors[chunk * 4096..][..4096]);
            assert_eq!(bytes[..], chunks.concat());
        }
        let mut bytes = [0; 21 * 512];
        read_exact_at(&device, Sector(7), &mut bytes).unwrap();
        assert_eq!(bytes[..], sectors[7 * 512..28 * 512]);
    }

    #[test]
    fn what_follows_on_a_leg_merges_there() {
        let legs = [memory(64), memory(64)];
        let device: Arc<dyn BlockDevice> = Arc::new(Stripe::new(4096, legs.to_vec()).unwrap());
        let batch = Batch::new();
        let plug = Plug::new(&device);
        for chunk in 0..16 {
            let buffer = crate::Buffer::zeroed(4096);
            plug.submit(Bio::write(Sector(chunk * 8), buffer).in_batch(&batch));
        }
        batch.wait().unwrap();
        for leg in &legs {
            let statistics = leg.statistics();
            assert_eq!((statistics.bios, statistics.requests), (8, 1));
        }
        assert_eq!(device.statistics().bios, 16);
    }

    #[test]
    fn zeroes_reach_each_leg_once() {
        let legs = [memory(1 << 20), memory(1 << 20), memory(1 << 20)];
        let device = Stripe::new(4096, legs.to_vec()).unwrap();
        write_all_at(&device, Sector(0), &[1; 64 * 512]).unwrap();
        let zero = |start: u64, end: u64| {
            let before: Vec<u64> = legs.iter().map(|leg| leg.statistics().bios).collect();
            let (bio, waiter) =
                Bio::write_zeroes(Sector(start), (end - start) * SECTOR_SIZE).waited();
            crate::plug::submit_directly(&device, bio);
            waiter.wait().result.unwrap();
            let after = legs.iter().map(|leg| leg.statistics().bios);
            after.zip(before).map(|(after, before)| after - before).collect::<Vec<_>>()
        };
        assert_eq!(zero(3, 6), [1, 0, 0]);
        assert_eq!(zero(31, 33), [1, 1, 0]);
        assert_eq!(zero(50, 3 << 20), [1, 1, 1]);
        let mut bytes = [9; 64 * 512];
        read_exact_at(&device, Sector(0), &mut bytes).unwrap();
        for (sector, bytes) in bytes.chunks(512).enumerate() {
            let zeroed = matches!(sector, 3..6 | 31..33 | 50..);
            assert_eq!(bytes, [u8::from(!zeroed); 512], "sector {sector}");
        }
    }

    #[test]
    fn impossible_stripes_are_refused() {
        let refused = |chunk, legs| Stripe::new(chunk, legs).err().map(|error| error.to_string());
        assert!(refused(65_535, vec![memory(1)]).unwrap().contains("chunks of 65535 bytes"));
        assert!(refused(65_536, Vec::new()).unwrap().contains("at least one"));
        assert_eq!(Stripe::new(65_536, vec![memory(1)]).unwrap().capacity(), Sector(0));
    }

    proptest! {
        #[test]
        fn every_sector_has_one_place(
            shift in 12..20u32, legs in 1..12u64, start in 0..1u64 << 20, length in 1..1u64 << 12,
        ) {
            let layout = Layout::new(1 << shift, legs);
            let sectors = Sector(start)..Sector(start + length);
            let parts: Vec<_> = (0..legs).map(|leg| layout.on_leg(leg, &sectors)).collect();
            let total: u64 = parts.iter().map(|part| part.end.0 - part.start.0).sum();
            prop_assert_eq!(total, length);
            for sector in start..start + length {
                let (leg, at) = layout.locate(sector);
                prop_assert!(parts[leg as usize].contains(&Sector(at)));
            }
        }
    }
}
