//! A device whose changes stay in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::io::Errno;

use super::legs::{LegPosition, Legs};
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Stacked};
use crate::drivers::MemoryDevice;
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// The contents of another device with changes that it never sees.
///
/// Written data are kept in memory, in pieces of 4 KiB, and lost with the overlay. Reads of all
/// else go to the device below, which is never written or flushed.
pub struct Overlay {
    /// The device below, then the memory.
    legs: Legs,
    name: String,
    capacity: Sector,
    limits: Limits,
    /// The ranges in memory: first sectors, and where those end. They neither overlap nor touch.
    held: RwLock<BTreeMap<u64, u64>>,
}

/// Bytes of memory taken for each place that is written to: about a block of metadata.
const PIECE: u64 = 4 << 10;

const BELOW: usize = 0;
const MEMORY: usize = 1;

impl Overlay {
    /// An overlay on `below` that holds no changes.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>) -> Self {
        let (capacity, limits) = (below.capacity(), below.limits());
        let memory = MemoryDevice::in_pieces(capacity.0 * SECTOR_SIZE, PIECE);
        let name = format!("{} (changes in memory)", below.name());
        let legs = Legs::new(vec![below, Arc::new(memory)]).expect("there are two legs");
        let limits = limits.combine(legs.limits());
        Self { legs, name, capacity, limits, held: RwLock::default() }
    }

    /// Sectors that were written.
    #[cfg(test)]
    fn held_sectors(&self) -> u64 {
        self.held.read().iter().map(|(start, end)| end - start).sum()
    }

    /// Where `sector` is.
    fn place(&self, sector: Sector) -> LegPosition {
        let held = self.held.read();
        let before = held.range(..=sector.0).next_back();
        if let Some((_, end)) = before.filter(|(_, end)| **end > sector.0) {
            return LegPosition { leg: MEMORY, sector, left: end - sector.0 };
        }
        let next = held.range(sector.0..).next().map_or(self.capacity.0, |(start, _)| *start);
        LegPosition { leg: BELOW, sector, left: next - sector.0 }
    }

    /// Records that the memory holds the sectors from `start` to `end`.
    fn hold(&self, mut start: u64, mut end: u64) {
        let mut held = self.held.write();
        // Ranges that touch the new one become part of it.
        while let Some((from, to)) = held.range(..=end).next_back().map(|(from, to)| (*from, *to))
            && to >= start
        {
            held.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        held.insert(start, end);
    }
}

impl BlockDevice for Overlay {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Overlay {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        match bio.operation() {
            Operation::Read => self.legs.spread(bio, below, |sector| self.place(sector)),
            Operation::Write | Operation::WriteZeroes | Operation::Discard => {
                let start = bio.sector().0;
                self.hold(start, start + bio.length() / SECTOR_SIZE);
                below.submit(&*self.legs.devices()[MEMORY], bio);
            }
            Operation::Flush => below.submit(&*self.legs.devices()[MEMORY], bio),
            // Not in the limits of memory.
            Operation::CloneRange => bio.fail(self.name(), Errno::OPNOTSUPP.into()),
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flush, read_exact_at, write_all_at};

    #[test]
    fn changes_are_seen_and_stay_in_memory() {
        let below: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 * 512));
        write_all_at(&*below, Sector(0), &[1; 64 * 512]).unwrap();
        let overlay = Overlay::new(Arc::clone(&below));
        for (start, sectors) in [(8, 2), (11, 1), (10, 1), (30, 4), (29, 6), (63, 1)] {
            write_all_at(&overlay, Sector(start), &vec![2; sectors * 512]).unwrap();
        }
        flush(&overlay).unwrap();
        assert_eq!(overlay.held_sectors(), 4 + 6 + 1);
        assert_eq!(overlay.held.read().len(), 3);
        let mut bytes = [0; 64 * 512];
        read_exact_at(&overlay, Sector(0), &mut bytes).unwrap();
        for (sector, bytes) in bytes.chunks(512).enumerate() {
            let changed = matches!(sector, 8..=11 | 29..=34 | 63);
            assert_eq!(bytes[0], if changed { 2 } else { 1 }, "sector {sector}");
        }
        read_exact_at(&*below, Sector(0), &mut bytes).unwrap();
        assert_eq!(bytes, [1; 64 * 512]);
        assert!(write_all_at(&overlay, Sector(64), &[0; 512]).is_err());
    }
}
