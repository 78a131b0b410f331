//! Devices that are physical volumes, put together to groups.

use super::assemble::Assembly;
use super::checks;
use super::group::{Group, Logical, Role};
use super::physical::{self, Physical};
use crate::layer_error::LayerError;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::{BlockDevice, SECTOR_SIZE};

/// A device with the label of LVM.
#[derive(Debug)]
pub struct PhysicalVolume {
    device: Arc<dyn BlockDevice>,
    found: Physical,
    /// The newest of its descriptions that can be.
    group: Option<Group>,
}

/// A volume group, of which not all physical volumes need to be there.
#[derive(Debug)]
pub struct VolumeGroup {
    group: Group,
    physical: BTreeMap<String, Arc<dyn BlockDevice>>,
    members: Vec<usize>,
    notes: Vec<String>,
}

/// A logical volume, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalVolume {
    /// Its name in its group.
    pub name: String,
    /// Its identifier, as LVM writes it.
    pub id: String,
    /// Its length in bytes.
    pub bytes: u64,
}

impl PhysicalVolume {
    /// Reads the label and the metadata of a device; `None` without a label.
    ///
    /// # Errors
    /// The device fails, or the label is damaged.
    pub fn read(device: &Arc<dyn BlockDevice>) -> Result<Option<Self>, LayerError> {
        let Some(mut found) = physical::read(&**device)? else { return Ok(None) };
        let mut group: Option<Group> = None;
        for text in std::mem::take(&mut found.texts) {
            let parsed =
                Group::parse(&text).and_then(|group| checks::check(&group).map(|()| group));
            match parsed {
                Ok(parsed) if group.as_ref().is_none_or(|old| old.sequence < parsed.sequence) => {
                    group = Some(parsed);
                }
                Ok(_) => {}
                Err(fault) => found.faults.push(fault),
            }
        }
        Ok(Some(Self { device: Arc::clone(device), found, group }))
    }
}

/// The groups that devices belong to; numbers in the second part are of those that belong to none that is
/// known, with the reason.
#[must_use]
pub fn groups(volumes: &[PhysicalVolume]) -> (Vec<VolumeGroup>, Vec<(usize, LayerError)>) {
    let mut newest = BTreeMap::<&str, &Group>::new();
    for group in volumes.iter().filter_map(|volume| volume.group.as_ref()) {
        let known = newest.entry(&group.id).or_insert(group);
        if known.sequence < group.sequence {
            *known = group;
        }
    }
    let groups = newest.into_values().map(|group| VolumeGroup::of(group, volumes));
    let groups: Vec<_> = groups.collect();
    let is_taken = |number: &usize| groups.iter().any(|group| group.members.contains(number));
    let others = (0..volumes.len()).filter(|number| !is_taken(number));
    let others = others.map(|number| (number, volumes[number].why_alone())).collect();
    (groups, others)
}

impl PhysicalVolume {
    /// Its identifier, as LVM writes it.
    #[must_use]
    pub fn id(&self) -> String {
        hyphened(&self.found.id)
    }

    /// The name of its group, if it has a description of one.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        Some(&self.group.as_ref()?.name)
    }

    fn why_alone(&self) -> LayerError {
        let device = self.device.name().to_owned();
        match self.found.faults.first() {
            Some(fault) => LayerError::Damaged {
                what: "the metadata of LVM".into(),
                device,
                fault: fault.clone(),
            },
            None => LayerError::Missing {
                what: format!("the physical volume {} on {device}", self.found.id),
                missing: "the disk with the metadata of its group, if it is in one".into(),
                way: "name all disks of the group, as in 'lvm(a.img,b.img)'",
            },
        }
    }

    /// Whether extents of a place in a group are on bytes that LVM has for itself.
    fn is_overlapped(&self, start: u64, sectors: u64) -> bool {
        let (start, end) = (
            start.saturating_mul(SECTOR_SIZE),
            start.saturating_add(sectors).saturating_mul(SECTOR_SIZE),
        );
        self.found.reserved.iter().any(|range| range.start < end && start < range.end)
    }
}

impl VolumeGroup {
    fn of(group: &Group, volumes: &[PhysicalVolume]) -> Self {
        let mut whole = Self {
            group: group.clone(),
            physical: BTreeMap::new(),
            members: Vec::new(),
            notes: Vec::new(),
        };
        for (number, volume) in volumes.iter().enumerate() {
            let name = volume.device.name();
            let mut place = group.physical.iter().filter(|(_, place)| place.id == volume.found.id);
            let Some((key, place)) = place.next() else {
                if volume.group.as_ref().is_some_and(|old| old.id == group.id) {
                    whole.notes.push(format!("{name} is no part of {} any more", group.name));
                    whole.members.push(number);
                }
                continue;
            };
            whole.members.push(number);
            if let Some(old) = &volume.group {
                whole.compare(old, name);
            }
            whole.notes.extend(volume.found.faults.iter().map(|fault| format!("{name}: {fault}")));
            let sectors = place.extents.saturating_mul(group.extent_sectors);
            if volume.is_overlapped(place.start, sectors) {
                whole.notes.push(format!("{name} is left out: its extents are on its metadata"));
            } else if place.was_missing {
                whole
                    .notes
                    .push(format!("{name} is left out: it was missing when the group changed"));
            } else if whole.physical.contains_key(key) {
                whole.notes.push(format!("{name} is left out: it is a copy of another disk"));
            } else {
                whole.physical.insert(key.clone(), Arc::clone(&volume.device));
            }
        }
        whole
    }

    /// Notes what an older description means.
    fn compare(&mut self, other: &Group, device: &str) {
        let (name, sequence) = (&self.group.name, self.group.sequence);
        if other.sequence < sequence {
            let old = other.sequence;
            self.notes.push(format!(
                "the metadata on {device} is older ({old}) than the newest of {name} ({sequence}), which counts"
            ));
        } else if *other != (Group { is_writable: other.is_writable, ..self.group.clone() }) {
            self.notes.push(format!(
                "there are two descriptions of {name} of the same number, {sequence}; that on {device} is left \
                 out, and nothing is changed"
            ));
            self.group.is_writable = false;
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.group.name
    }

    /// The numbers of the physical volumes that say they are part of it.
    #[must_use]
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// What is odd, but does not keep volumes from being read.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The volumes that are for use, by name.
    pub fn volumes(&self) -> impl Iterator<Item = LogicalVolume> {
        // Snapshots are for use, too, and marked otherwise.
        let is_listed =
            |volume: &Logical| volume.is_visible || matches!(volume.role, Role::SnapshotOf(_));
        let visible = self.group.logical.iter().filter(move |(_, volume)| is_listed(volume));
        visible.map(|(name, volume)| LogicalVolume {
            name: name.clone(),
            id: hyphened(&volume.id),
            // The sectors are those of a device.
            bytes: (volume.extents() * self.group.extent_sectors).saturating_mul(SECTOR_SIZE),
        })
    }

    /// The device that a volume is.
    ///
    /// # Errors
    /// It is of a kind that is not read, or a disk of it is not there or too short.
    pub fn open(&self, name: &str) -> Result<Arc<dyn BlockDevice>, LayerError> {
        Assembly { group: &self.group, physical: &self.physical }.open(name)
    }
}

/// An identifier as LVM writes it.
fn hyphened(id: &str) -> String {
    let places = [6, 10, 14, 18, 22, 26];
    let characters = id.chars().enumerate().flat_map(|(at, character)| {
        places.contains(&at).then_some('-').into_iter().chain(Some(character))
    });
    characters.collect()
}
