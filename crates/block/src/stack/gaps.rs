//! A device of which parts are known to be lost: reads of them fail, whatever lies below.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, SECTOR_SIZE, Sector};

/// The device below, without some ranges: a copy of a disk whose bad sectors were not read. What reads any of
/// them fails as a whole, as it would on the disk.
pub struct Gaps {
    below: [Arc<dyn BlockDevice>; 1],
    name: String,
    /// In ascending order; none overlaps another.
    gaps: Vec<Range<Sector>>,
}

impl Gaps {
    /// `below` without `gaps`.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>, mut gaps: Vec<Range<Sector>>) -> Self {
        gaps.sort_unstable_by_key(|gap| gap.start);
        let mut joined: Vec<Range<Sector>> = Vec::with_capacity(gaps.len());
        for gap in gaps.into_iter().filter(|gap| gap.start < gap.end) {
            match joined.last_mut() {
                Some(last) if last.end >= gap.start => last.end = last.end.max(gap.end),
                _ => joined.push(gap),
            }
        }
        let name = format!("{} (with gaps)", below.name());
        Self { below: [below], name, gaps: joined }
    }

    /// Whether any of the sectors is in a gap.
    fn touches(&self, sectors: &Range<Sector>) -> bool {
        let first = self.gaps.partition_point(|gap| gap.end <= sectors.start);
        self.gaps.get(first).is_some_and(|gap| gap.start < sectors.end)
    }
}

impl BlockDevice for Gaps {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.below[0].capacity()
    }

    fn limits(&self) -> Limits {
        self.below[0].limits()
    }

    fn is_read_only(&self) -> bool {
        self.below[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Gaps {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        // Cannot overflow: the bio lies inside the device.
        let end = Sector(bio.sector().0 + bio.length() / SECTOR_SIZE);
        if bio.operation() == Operation::Read && self.touches(&(bio.sector()..end)) {
            let lost = io::Error::other("a part of it is lost, as the map of the copy says");
            return bio.fail(&self.name, lost.into());
        }
        below.submit(&*self.below[0], bio);
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        visit(Part { device: &*self.below[0], sectors, is_written: true });
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::plug::{read_exact_at, write_all_at};

    #[test]
    fn reads_of_gaps_fail_and_others_do_not() {
        let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 * 512));
        let gaps = [8..10, 2..3, 9..12, 5..5, 60..99];
        let gaps = gaps.map(|gap| Sector(gap.start)..Sector(gap.end)).to_vec();
        let device = Gaps::new(disk, gaps);
        write_all_at(&device, Sector(0), &[7; 64 * 512]).unwrap();
        let read = |sector, count: usize| {
            let mut bytes = vec![0; count * 512];
            let done = read_exact_at(&device, Sector(sector), &mut bytes);
            done.is_ok() && bytes.iter().all(|byte| *byte == 7)
        };
        assert!(read(0, 2) && read(3, 5) && read(12, 48));
        assert!(!read(2, 1) && !read(0, 3) && !read(11, 1) && !read(7, 2) && !read(63, 1));
    }
}
