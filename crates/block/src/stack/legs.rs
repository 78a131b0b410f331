//! What devices made of several have in common.

use std::ops::Range;
use std::sync::Arc;

use crate::bio::Bio;
use crate::device::{Below, BlockDevice, Part, shared_leaf};
use crate::units::{Limits, SECTOR_SIZE, Sector};

use super::StackError;

/// Where a sector of a stacked device lies.
pub(super) struct LegPosition {
    /// Number of the leg.
    pub(super) leg: usize,
    /// Sector of the leg.
    pub(super) sector: Sector,
    /// Sectors that follow each other on the leg from there on, as they do on the device; not 0.
    pub(super) left: u64,
}

/// The devices under a stacked one, at least one, and what follows from all of them.
pub(super) struct Legs {
    devices: Box<[Arc<dyn BlockDevice>]>,
    limits: Limits,
    read_only: bool,
}

impl Legs {
    pub(super) fn new(devices: Vec<Arc<dyn BlockDevice>>) -> Result<Self, StackError> {
        let limits = devices.iter().map(|device| device.limits()).reduce(Limits::combine);
        let limits = limits.ok_or(StackError::NoLegs)?;
        if let Some(name) = shared_leaf(&devices) {
            return Err(StackError::Twice { path: name.into() });
        }
        let read_only = devices.iter().any(|device| device.is_read_only());
        Ok(Self { devices: devices.into(), limits, read_only })
    }

    pub(super) fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.devices
    }

    /// Limits that every leg keeps.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Sectors of each leg, without a rest that is no multiple of `unit` bytes.
    pub(super) fn capacities(&self, unit: u64) -> impl Iterator<Item = Sector> {
        // Less than a sector is none; the units of devices are whole sectors.
        let unit = (unit / SECTOR_SIZE).max(1);
        self.devices.iter().map(move |device| {
            let sectors = device.capacity().0;
            Sector(sectors - sectors % unit)
        })
    }

    /// As a device is called that is made of these legs by `kind`.
    pub(super) fn name(&self, kind: &str) -> String {
        let names: Vec<&str> = self.devices.iter().map(|device| device.name()).collect();
        format!("{kind}({})", names.join(","))
    }

    /// Where `sectors` are that every leg has at the same place.
    pub(super) fn same_parts<'d>(
        &'d self,
        sectors: &Range<Sector>,
        visit: &mut dyn FnMut(Part<'d>),
    ) {
        for device in &self.devices {
            visit(Part { device: &**device, sectors: sectors.clone(), is_written: true });
        }
    }

    /// Flushes every leg.
    pub(super) fn flush<'d>(&'d self, mut flush: Bio, below: &mut Below<'d>) {
        let Some((last, others)) = self.devices.split_last() else { return };
        for device in others {
            below.submit(&**device, flush.twin());
        }
        below.submit(&**last, flush);
    }

    /// Hands `bio` to the legs that hold it, cut wherever the place of its front ends.
    pub(super) fn spread<'d>(
        &'d self,
        mut bio: Bio,
        below: &mut Below<'d>,
        place: impl Fn(Sector) -> LegPosition,
    ) {
        loop {
            let LegPosition { leg, sector, left } = place(bio.sector());
            let device = &*self.devices[leg];
            let here = left * SECTOR_SIZE;
            if bio.length() <= here {
                bio.remap(sector);
                return below.submit(device, bio);
            }
            let mut front = bio.split_front(here);
            front.remap(sector);
            below.submit(device, front);
        }
    }
}
