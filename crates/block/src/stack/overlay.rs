//! A device whose changes go elsewhere.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::io::Errno;

use super::StackError;
use super::legs::{LegPosition, Legs};
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::drivers::MemoryDevice;
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// The contents of another device with changes that it never sees.
///
/// Written data are kept on a second device, and lost with the overlay. Reads of all else go to the
/// device below, which is never written or flushed.
pub struct Overlay {
    /// The device below, then that of the changes.
    legs: Legs,
    name: String,
    capacity: Sector,
    limits: Limits,
    changed: Arc<RwLock<Changed>>,
}

/// The sectors that are on the device of the changes.
#[derive(Default)]
struct Changed {
    /// Those that were written: first sectors, and where those end. They neither overlap nor touch.
    written: BTreeMap<u64, u64>,
    /// Those of writes without an answer, which what is submitted behind them has to see. One that
    /// fails leaves its sectors to the device below, but for those that others have written.
    in_flight: Vec<Range<u64>>,
}

/// Bytes of memory taken for each place that is written to: about a block of metadata.
const PIECE: u64 = 4 << 10;

const BELOW: usize = 0;
const CHANGES: usize = 1;

impl Overlay {
    /// An overlay on `below` that holds no changes, and keeps them in memory, in pieces of 4 KiB.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>) -> Self {
        let memory = MemoryDevice::in_pieces(below.capacity().0 * SECTOR_SIZE, PIECE);
        let name = format!("{} (changes in memory)", below.name());
        let legs = Legs::new(vec![below, Arc::new(memory)]).expect("there are two legs, one new");
        Self::named(name, legs)
    }

    /// An overlay on `below` that holds no changes, and keeps them on `changes`, whose contents are of
    /// no account; a sparse file takes as much space as is written.
    ///
    /// # Errors
    /// `changes` is shorter than `below`, or has a sector of it.
    pub fn with_changes(
        below: Arc<dyn BlockDevice>,
        changes: Arc<dyn BlockDevice>,
    ) -> Result<Self, StackError> {
        let [needed, found] = [&below, &changes].map(|device| device.capacity().0 * SECTOR_SIZE);
        if found < needed {
            return Err(StackError::ShortChanges { changes: changes.name().into(), found, needed });
        }
        let name = format!("{} (changes in {})", below.name(), changes.name());
        Ok(Self::named(name, Legs::new(vec![below, changes])?))
    }

    fn named(name: String, legs: Legs) -> Self {
        let capacity = legs.devices()[BELOW].capacity();
        // A clone would have to be one of the device below, too.
        let limits = Limits { clones_ranges: false, ..legs.limits() };
        Self { legs, name, capacity, limits, changed: Arc::default() }
    }

    /// The sectors that were written, in ascending order, as ranges that do not touch.
    #[must_use]
    pub fn changed(&self) -> Vec<Range<u64>> {
        self.changed.read().written.iter().map(|(start, end)| *start..*end).collect()
    }

    /// Where `sector` is.
    fn place(&self, sector: Sector) -> LegPosition {
        let (end, is_changed) = self.changed.read().run(sector.0);
        let leg = if is_changed { CHANGES } else { BELOW };
        LegPosition { leg, sector, left: end.min(self.capacity.0) - sector.0 }
    }
}

impl Changed {
    /// Up to where `sector` and those behind it are changed, or are not.
    fn run(&self, sector: u64) -> (u64, bool) {
        let before = self.written.range(..=sector).next_back().map(|(_, end)| *end);
        let writes = self.in_flight.iter();
        let covering =
            writes.clone().filter(|write| write.contains(&sector)).map(|write| write.end);
        if let Some(end) = before.filter(|end| *end > sector).into_iter().chain(covering).max() {
            return (end, true);
        }
        let next = self.written.range(sector..).next().map(|(start, _)| *start);
        let later = writes.map(|write| write.start).filter(|start| *start > sector);
        (next.into_iter().chain(later).min().unwrap_or(u64::MAX), false)
    }

    /// A write of these sectors ended.
    fn ended(&mut self, range: Range<u64>, succeeded: bool) {
        if let Some(index) = self.in_flight.iter().position(|write| *write == range) {
            self.in_flight.swap_remove(index);
        }
        if succeeded {
            self.add(range);
        }
    }

    fn add(&mut self, Range { mut start, mut end }: Range<u64>) {
        // Ranges that touch the new one become part of it.
        while let Some((&from, &to)) = self.written.range(..=end).next_back()
            && to >= start
        {
            self.written.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.written.insert(start, end);
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
        let Some(mut bio) = bio.admit(self) else { return };
        match bio.operation() {
            Operation::Read => self.legs.spread(bio, below, |sector| self.place(sector)),
            Operation::Write | Operation::WriteZeroes | Operation::Discard => {
                let start = bio.sector().0;
                let range = start..start + bio.length() / SECTOR_SIZE;
                self.changed.write().in_flight.push(range.clone());
                let changed = Arc::clone(&self.changed);
                bio.intercept(move |bio, result| {
                    changed.write().ended(range, result.is_ok());
                    bio.answer(result);
                });
                below.submit(&*self.legs.devices()[CHANGES], bio);
            }
            Operation::Flush => below.submit(&*self.legs.devices()[CHANGES], bio),
            // Not in the limits.
            Operation::CloneRange => bio.fail(self.name(), Errno::OPNOTSUPP.into()),
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        for (leg, is_written) in [(BELOW, false), (CHANGES, true)] {
            let device = &*self.legs.devices()[leg];
            visit(Part { device, sectors: sectors.clone(), is_written });
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fault, FaultyDevice};
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
        assert_eq!(overlay.changed(), [8..12, 29..35, 63..64]);
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

    /// A device of 64 sectors with this byte everywhere.
    fn filled(byte: u8) -> Arc<dyn BlockDevice> {
        let device = MemoryDevice::new(64 * 512);
        write_all_at(&device, Sector(0), &[byte; 64 * 512]).unwrap();
        Arc::new(device)
    }

    #[test]
    fn a_write_that_failed_changes_nothing() {
        let torn = Fault::new().on(Operation::Write).nth(1).torn(7);
        let changes: Arc<dyn BlockDevice> = Arc::new(FaultyDevice::new(filled(9), [torn]));
        let overlay = Overlay::with_changes(filled(1), changes).unwrap();
        write_all_at(&overlay, Sector(2), &[2; 512]).unwrap();
        assert!(write_all_at(&overlay, Sector(8), &[2; 40 * 512]).is_err());
        let mut bytes = [0; 64 * 512];
        read_exact_at(&overlay, Sector(0), &mut bytes).unwrap();
        for (sector, bytes) in bytes.chunks(512).enumerate() {
            assert_eq!(bytes, [if sector == 2 { 2 } else { 1 }; 512], "sector {sector}");
        }
    }

    #[test]
    fn a_write_in_flight_is_seen_and_may_fail_beside_others() {
        let mut changed = Changed::default();
        changed.add(10..20);
        changed.in_flight.extend([15..30, 28..40]);
        let runs = [0, 10, 19, 20, 28, 39, 40].map(|sector| changed.run(sector));
        let expected = [(10, false), (20, true), (30, true), (30, true), (40, true), (40, true)];
        assert_eq!(runs[..6], expected);
        assert_eq!(runs[6], (u64::MAX, false));
        changed.ended(28..40, true);
        changed.ended(15..30, false);
        assert_eq!(changed.written, BTreeMap::from([(10, 20), (28, 40)]));
        assert!(changed.in_flight.is_empty());
        assert_eq!(changed.run(20), (28, false));
    }

    #[test]
    fn changes_need_room_for_all() {
        let short: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(63 * 512));
        let refused = Overlay::with_changes(filled(1), short).err().unwrap().to_string();
        assert!(refused.contains("32256 bytes") && refused.contains("32768"), "{refused}");
    }
}
