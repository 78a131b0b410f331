//! A device with threads of its own, and what knows whether others use what it is stored in.

use std::sync::Arc;
use undercroft_block::{BlockDevice, Driver, Exclusive, Layer, Leaf, Limits, Sector, Taken};

/// A device of a driver, that is stored in something else.
pub(crate) struct Guarded<D: Driver> {
    pub(crate) leaf: Leaf<D>,
    pub(crate) guard: Guard,
}

/// What a device is stored in.
pub(crate) enum Guard {
    /// Files that are only read: others may do what they like.
    None,
    /// A file that is held.
    File(Exclusive),
    /// A device, which knows.
    Below(Arc<dyn BlockDevice>),
}

impl<D: Driver> BlockDevice for Guarded<D> {
    fn name(&self) -> &str {
        self.leaf.name()
    }

    fn capacity(&self) -> Sector {
        self.leaf.capacity()
    }

    fn limits(&self) -> Limits {
        self.leaf.limits()
    }

    fn is_read_only(&self) -> bool {
        self.leaf.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        self.leaf.layer()
    }

    fn check_alone(&self) -> Result<(), Taken> {
        match &self.guard {
            Guard::None => Ok(()),
            Guard::File(held) => held.check(),
            Guard::Below(device) => device.check_alone(),
        }
    }
}
