//! A device that is a range of another: a partition, or an image inside an image.

use std::sync::Arc;

use crate::device::{BlockDevice, Limits};
use crate::request::Request;
use crate::sector::Sector;
use crate::statistics::{Counters, Statistics};

/// The sectors `start..start + length` of another device, addressed from 0.
pub struct Window {
    below: Arc<dyn BlockDevice>,
    name: String,
    start: Sector,
    length: Sector,
    counters: Counters,
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
        Some(Self { below, name, start, length, counters: Counters::default() })
    }

    /// Everything of `below` from `start` on; `None` if it ends before.
    #[must_use]
    pub fn from_sector(below: Arc<dyn BlockDevice>, start: Sector) -> Option<Self> {
        let length = below.capacity().checked_sub(start)?;
        Self::new(below, start, length)
    }

    /// Moves a request of this device to the one below.
    fn remap(&self, request: Request) -> Option<Request> {
        let mut request = request.admit(self)?;
        // Cannot overflow: the request lies inside the window and the window inside the device.
        let sector = Sector(self.start.0 + request.sector().0);
        request.remap(sector);
        Some(request)
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
        self.below.limits()
    }

    fn is_read_only(&self) -> bool {
        self.below.is_read_only()
    }

    fn submit(&self, requests: Vec<Request>) {
        self.counters.count(&requests);
        let requests: Vec<_> = requests.into_iter().filter_map(|one| self.remap(one)).collect();
        self.below.submit(requests);
    }

    fn drain(&self) {
        self.below.drain();
    }

    fn statistics(&self) -> Statistics {
        self.counters.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{read_exact_at, write_all_at};
    use crate::drivers::MemoryDevice;
    use crate::error::Reason;

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
