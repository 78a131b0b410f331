//! The volume in the scratch: all changes of a repair are made in memory first.

use std::ops::Range;
use std::sync::Arc;

use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Sector, read_exact_at, write_all_at};

use crate::error::RepairError;
use crate::legible::{Legible, Unreadable};

/// Sectors that are compared at once.
const STEP: u64 = 2048;

/// A device with the changes of a repair, of which it sees none.
pub(crate) struct Scratch {
    below: Arc<dyn BlockDevice>,
    /// The same, with zeroes where it cannot be read.
    legible: Arc<dyn BlockDevice>,
    unreadable: Unreadable,
    overlay: Arc<Overlay>,
}

impl Scratch {
    pub(crate) fn new(below: Arc<dyn BlockDevice>) -> Result<Self, RepairError> {
        let (legible, unreadable) = Legible::over(Arc::clone(&below))?;
        let overlay = Arc::new(Overlay::new(Arc::clone(&legible)));
        Ok(Self { below, legible, unreadable, overlay })
    }

    /// The same device, without any changes.
    pub(crate) fn renewed(&self) -> Self {
        Self {
            below: Arc::clone(&self.below),
            legible: Arc::clone(&self.legible),
            unreadable: Arc::clone(&self.unreadable),
            overlay: Arc::new(Overlay::new(Arc::clone(&self.legible))),
        }
    }

    /// The device as it is, with zeroes where it cannot be read.
    pub(crate) fn legible(&self) -> &Arc<dyn BlockDevice> {
        &self.legible
    }

    /// Sectors of a range that could not be read, as far as they were met.
    pub(crate) fn unreadable(&self, range: Range<u64>) -> usize {
        self.unreadable.lock().range(range).count()
    }

    /// The device as the repair leaves it.
    pub(crate) fn device(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.overlay) as Arc<dyn BlockDevice>
    }

    /// The device as it is.
    pub(crate) fn below(&self) -> &Arc<dyn BlockDevice> {
        &self.below
    }

    pub(crate) fn read(&self, sector: Sector, len: usize) -> Result<Vec<u8>, RepairError> {
        let mut bytes = vec![0; len];
        self.read_into(sector, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn read_into(&self, sector: Sector, bytes: &mut [u8]) -> Result<(), RepairError> {
        Ok(read_exact_at(self.overlay.as_ref(), sector, bytes)?)
    }

    pub(crate) fn write(&self, sector: Sector, bytes: &[u8]) -> Result<(), RepairError> {
        Ok(write_all_at(self.overlay.as_ref(), sector, bytes)?)
    }

    /// The sectors that are not as they were, ascending, without those of a range.
    pub(crate) fn differences(&self, without: &Range<u64>) -> Result<Vec<u64>, RepairError> {
        let mut sectors = Vec::new();
        for range in self.overlay.changed() {
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + STEP);
                self.compare(at..end, without, &mut sectors)?;
                at = end;
            }
        }
        Ok(sectors)
    }

    fn compare(
        &self,
        range: Range<u64>,
        without: &Range<u64>,
        to: &mut Vec<u64>,
    ) -> Result<(), RepairError> {
        let len = (range.end - range.start) as usize * 512;
        let new = self.read(Sector(range.start), len)?;
        let mut old = vec![0; len];
        // What cannot be read is not as it is to be.
        let is_known = read_exact_at(self.below.as_ref(), Sector(range.start), &mut old).is_ok();
        let pieces = range.zip(new.chunks_exact(512).zip(old.chunks_exact(512)));
        let changed = pieces
            .filter(|(sector, (new, old))| (!is_known || new != old) && !without.contains(sector));
        to.extend(changed.map(|(sector, _)| sector));
        Ok(())
    }
}
