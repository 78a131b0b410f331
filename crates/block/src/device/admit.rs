//! The check that every stacked device makes.

use super::block_device::BlockDevice;
use rustix::io::Errno;

use crate::bio::{Bio, Operation, Reason};

impl Bio {
    /// The check that a stacked device makes before it maps a bio: answers a bio that `device`
    /// cannot serve, because of its range or because it would change a read-only device, and
    /// returns any other.
    #[must_use]
    pub fn admit<D: BlockDevice + ?Sized>(self, device: &D) -> Option<Self> {
        if self.operation().modifies() && device.is_read_only() {
            self.fail(device.name(), Reason::ReadOnly);
            return None;
        }
        if self.operation() == Operation::CloneRange && !device.limits().clones_ranges {
            self.fail(device.name(), Errno::OPNOTSUPP.into());
            return None;
        }
        let capacity = device.capacity();
        if self.end().is_none_or(|end| end > capacity) {
            self.fail(device.name(), Reason::OutOfRange { capacity });
            return None;
        }
        Some(self)
    }
}
