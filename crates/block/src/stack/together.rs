//! Disks that only together are something, as the members of a group of LVM.

use std::ops::Range;
use std::sync::Arc;

use super::StackError;
use super::legs::Legs;
use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, Sector};

/// Devices that belong together and have no bytes of their own together: what they are is said by what is
/// on them. Its capacity is 0, and [`BlockDevice::members`] are the devices.
pub struct Together {
    legs: Legs,
    name: String,
}

impl Together {
    /// `devices`, of which `kind` is said in the name.
    ///
    /// # Errors
    /// Without devices, or with one sector of a device in two of them.
    pub fn new(kind: &str, devices: Vec<Arc<dyn BlockDevice>>) -> Result<Self, StackError> {
        let legs = Legs::new(devices)?;
        Ok(Self { name: legs.name(kind), legs })
    }
}

impl BlockDevice for Together {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        Sector::ZERO
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

    fn members(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

impl Stacked for Together {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        // Of 0 sectors there is nothing else.
        match bio.operation() {
            Operation::Flush => self.legs.flush(bio, below),
            _ => bio.succeed(),
        }
    }

    fn parts<'d>(&'d self, _sectors: Range<Sector>, _visit: &mut dyn FnMut(Part<'d>)) {}

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.legs.devices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Reason;
    use crate::drivers::MemoryDevice;
    use crate::plug::{flush, read_buffer};

    #[test]
    fn it_has_members_and_no_bytes() {
        let disk = || Arc::new(MemoryDevice::new(4096)) as Arc<dyn BlockDevice>;
        let both = Together::new("lvm", vec![disk(), disk()]).unwrap();
        assert_eq!((both.name(), both.capacity()), ("lvm(memory,memory)", Sector::ZERO));
        assert_eq!(both.members().len(), 2);
        assert!(both.members()[0].members().is_empty());
        let error = read_buffer(&both, Sector::ZERO, 512).unwrap_err();
        assert!(matches!(error.reason, Reason::OutOfRange { .. }));
        flush(&both).unwrap();
        let one = disk();
        assert!(matches!(
            Together::new("lvm", vec![Arc::clone(&one), one]),
            Err(StackError::Twice { .. })
        ));
    }
}
