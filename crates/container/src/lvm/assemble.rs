//! From a logical volume in metadata to a device.

use super::group::{Group, Logical, Role};
use super::mirror::{self, State};
use super::segment::{Area, Layout, Segment};
use crate::layer_error::LayerError;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::stack::{Linear, Mirror, Stripe};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, Window};

const ACTIVATE: &str = "`vgchange --activate y` makes it a disk, as /dev/GROUP/VOLUME: name that";

/// A group, and the devices that are its physical volumes, by their names in the metadata.
pub(super) struct Assembly<'a> {
    pub(super) group: &'a Group,
    pub(super) physical: &'a BTreeMap<String, Arc<dyn BlockDevice>>,
}

impl Assembly<'_> {
    /// The device of a logical volume.
    pub(super) fn open(&self, name: &str) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let Some(logical) = self.group.logical.get(name) else {
            return Err(self.missing(name, name.to_owned()));
        };
        if let Role::SnapshotOf(origin) = &logical.role {
            return Err(self.not_supported(name, &format!("a snapshot of {origin}")));
        }
        let device = self.volume(name, logical)?;
        let may_change =
            self.group.is_writable && logical.is_writable && logical.role == Role::Usual;
        let window = match may_change {
            true => {
                let length = device.capacity();
                let window = Window::new(device, Sector::ZERO, length);
                window.ok_or_else(|| self.damaged(format!("{name} has no end")))?
            }
            false => Window::for_reading(device),
        };
        Ok(Arc::new(window.named(format!("{}/{name}", self.group.name))))
    }

    /// The same of any volume, also of one that others are made of. None is part of itself.
    fn volume(&self, name: &str, logical: &Logical) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let segments = logical.segments.iter().map(|segment| self.segment(name, segment));
        let mut segments = segments.collect::<Result<Vec<_>, _>>()?;
        let device = match segments.len() {
            1 => segments.remove(0),
            _ => Arc::new(Linear::new(segments)?),
        };
        let expected = self.sectors(logical.extents());
        if device.capacity() != expected {
            let found = device.capacity();
            return Err(self.damaged(format!("{name} has {found} sectors, not {expected}")));
        }
        Ok(device)
    }

    fn segment(&self, name: &str, segment: &Segment) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let (areas, extents) = segment.areas();
        match &segment.layout {
            Layout::Striped { sectors, .. } => {
                let areas = areas.into_iter().map(|area| self.area(name, area, extents));
                let mut areas = areas.collect::<Result<Vec<_>, _>>()?;
                if areas.len() == 1 {
                    return Ok(areas.remove(0));
                }
                let chunk = sectors.saturating_mul(SECTOR_SIZE);
                Ok(Arc::new(Stripe::new(chunk, areas)?))
            }
            Layout::Mirrored(legs) => self.mirror(name, legs, extents),
            Layout::Other(kind) => Err(self.not_supported(name, &format!("of the kind {kind}"))),
        }
    }

    /// A mirror as far as its legs are there and have the data.
    fn mirror(
        &self,
        name: &str,
        legs: &[(Option<String>, Area)],
        extents: u64,
    ) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let only = |leg: usize| {
            let device = self.area(name, &legs[leg].1, extents)?;
            Ok::<_, LayerError>(Arc::new(Window::for_reading(device)) as _)
        };
        // Without superblocks, the kernel takes the data of the first leg.
        if legs.iter().all(|(metadata, _)| metadata.is_none()) {
            return only(0);
        }
        let superblock = |(metadata, _): &(Option<String>, Area)| {
            let Some(metadata) = metadata else { return Ok(None) };
            let Some(volume) = self.group.logical.get(metadata) else { return Ok(None) };
            match self.volume(metadata, volume) {
                Ok(device) => mirror::superblock(&*device),
                Err(LayerError::Missing { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let superblocks = legs.iter().map(superblock).collect::<Result<Vec<_>, _>>()?;
        match mirror::state(&superblocks) {
            Some(State::Only(leg)) => only(leg),
            Some(State::Same) => {
                let legs = legs.iter().map(|(_, area)| self.area(name, area, extents));
                let legs = legs.collect::<Result<Vec<_>, _>>()?;
                Ok(Arc::new(Mirror::new(legs)?))
            }
            // Before it was first used, all legs are as good.
            None if superblocks.iter().all(Option::is_none) => only(0),
            None => Err(self.damaged(format!("no leg of {name} is known to have its data"))),
        }
    }

    /// Extents of a physical or a logical volume, which has them.
    fn area(
        &self,
        name: &str,
        area: &Area,
        extents: u64,
    ) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let Area { of, first } = area;
        let (below, start) = match (self.group.physical.get(of), self.group.logical.get(of)) {
            (Some(place), _) => match self.physical.get(of) {
                Some(device) => (Arc::clone(device), place.start),
                None => {
                    let id = &place.id;
                    let what = format!("the physical volume {id}, which is {of} in its metadata");
                    return Err(self.missing(name, what));
                }
            },
            (None, Some(logical)) => (self.volume(of, logical)?, 0),
            (None, None) => return Err(self.missing(name, of.clone())),
        };
        // Neither overflows: all extents of the volume are sectors of a device.
        let start = Sector(start + self.sectors(*first).0);
        let length = self.sectors(extents);
        let (has, end) = (below.capacity(), start.0 + length.0);
        let window = Window::new(below, start, length).ok_or_else(|| {
            self.damaged(format!(
                "{name} is on {of} up to sector {end}, which has {has}; is the image truncated?"
            ))
        })?;
        Ok(Arc::new(window))
    }

    fn sectors(&self, extents: u64) -> Sector {
        Sector(extents * self.group.extent_sectors)
    }

    fn damaged(&self, fault: String) -> LayerError {
        let devices: Vec<_> = self.physical.values().map(|device| device.name()).collect();
        LayerError::Damaged {
            what: format!("the volume group {}", self.group.name),
            device: devices.join(", "),
            fault,
        }
    }

    fn not_supported(&self, name: &str, kind: &str) -> LayerError {
        let what = format!("the logical volume {}/{name}", self.group.name);
        LayerError::NotSupported { what, kind: kind.to_owned(), way: ACTIVATE }
    }

    fn missing(&self, name: &str, missing: String) -> LayerError {
        LayerError::Missing {
            what: format!("the logical volume {}/{name}", self.group.name),
            missing,
            way: "name all disks of the group, as in 'lvm(a.img,b.img)'",
        }
    }
}
