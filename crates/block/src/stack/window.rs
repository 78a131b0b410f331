//! A device that is a range of another: a partition, or an image inside an image.

use std::ops::Range;
use std::sync::Arc;

use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, Sector};

/// The sectors `start..start + length` of another device, addressed from 0.
pub struct Window {
    below: [Arc<dyn BlockDevice>; 1],
    name: String,
    start: Sector,
    length: Sector,
    read_only: bool,
}

impl Window {
    /// The `length` sectors of `below` from `start` on; `None` if they are not inside it.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>, start: Sector, length: Sector) -> Option<Self> {
        let end = start.checked_add(length)?;
        if end > below.capacity() {
            return None;
        }
        let name = format!("{} (sectors {start} to {end})", below.name());
        Some(Self { below: [below], name, start, length, read_only: false })
    }

    /// Everything of `below` from `start` on; `None` if it ends before.
    #[must_use]
    pub fn from_sector(below: Arc<dyn BlockDevice>, start: Sector) -> Option<Self> {
        let length = below.capacity().checked_sub(start)?;
        Self::new(below, start, length)
    }

    /// All of `below`, which is not changed through it.
    #[must_use]
    pub fn for_reading(below: Arc<dyn BlockDevice>) -> Self {
        let (name, length) = (below.name().to_owned(), below.capacity());
        Self { below: [below], name, start: Sector::ZERO, length, read_only: true }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }
}

impl BlockDevice for Window {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.length
    }

    fn limits(&self) -> Limits {
        self.below[0].limits()
    }

    fn is_read_only(&self) -> bool {
        self.read_only || self.below[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Window {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(mut bio) = bio.admit(self) else { return };
        if bio.operation() != Operation::Flush {
            // Cannot overflow: the bio lies inside the window and the window inside the device.
            bio.remap(Sector(self.start.0 + bio.sector().0));
        }
        below.submit(&*self.below[0], bio);
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        // Cannot overflow: they lie inside the window and the window inside the device.
        let sectors = Sector(self.start.0 + sectors.start.0)..Sector(self.start.0 + sectors.end.0);
        visit(Part { device: &*self.below[0], sectors, is_written: !self.read_only });
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Reason;
    use crate::drivers::MemoryDevice;
    use crate::plug::{read_exact_at, write_all_at};

    #[test]
    fn a_window_shifts_and_ends() {
        let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 * 512));
        let window = Window::new(Arc::clone(&disk), Sector(8), Sector(4)).unwrap();
        write_all_at(&window, Sector(1), &[7; 512]).unwrap();
        let mut bytes = [0; 512];
        read_exact_at(&*disk, Sector(9), &mut bytes).unwrap();
        assert_eq!(bytes, [7; 512]);
        let error = write_all_at(&window, Sector(3), &[0; 1024]).unwrap_err();
        assert!(matches!(error.reason, Reason::OutOfRange { capacity: Sector(4) }));
        assert_eq!(error.sector, Sector(3));
        let seen = Window::for_reading(disk);
        assert_eq!(seen.capacity(), Sector(64));
        assert!(matches!(
            write_all_at(&seen, Sector(0), &[0; 512]).unwrap_err().reason,
            Reason::ReadOnly
        ));
    }

    #[test]
    fn a_window_must_be_inside() {
        let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(64 * 512));
        assert!(Window::new(Arc::clone(&disk), Sector(60), Sector(5)).is_none());
        assert!(Window::new(Arc::clone(&disk), Sector(u64::MAX), Sector(2)).is_none());
        assert!(Window::from_sector(Arc::clone(&disk), Sector(65)).is_none());
        assert_eq!(Window::from_sector(disk, Sector(60)).unwrap().capacity(), Sector(4));
    }
}
