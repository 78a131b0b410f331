//! The search for what is in a disk.

use super::choice::Choice;
use super::node::{Layers, Node, Place};
use super::select::Depth;
use crate::field::{be32, be64};
use crate::layer_error::LayerError;
use crate::luks::{Container, Keys};
use crate::lvm::{self, PhysicalVolume};
use crate::raid::{self, Member};
use std::error::Error;
use std::sync::Arc;
use undercroft_block::partition::{PartitionError, PartitionTable};
use undercroft_block::{BlockDevice, BlockError, SECTOR_SIZE, Sector, read_buffer};
use undercroft_source::{
    FOREIGN_END, FOREIGN_HEAD, Foreign, ForeignKind, recognise, recognise_end,
};

/// Devices that are in each other: partitions in a volume in a container in a partition, and so on.
const MAX_ROUNDS: usize = 16;
/// Devices that are looked at.
const MAX_NODES: usize = 2048;
/// Bytes that tell all that has something inside, and volumes.
const FRONT: usize = 8 << 10;

impl Layers {
    /// Looks at all that is in a disk. With a choice, what is beside the chosen is not looked into. What is
    /// encrypted is opened with the keys, if one fits.
    ///
    /// # Errors
    /// The disk fails, or is a member of something and damaged.
    pub fn look(
        disk: &Arc<dyn BlockDevice>,
        choice: &Choice,
        depth: Depth,
        keys: &Keys,
    ) -> Result<Self, LayerError> {
        let head = match depth {
            Depth::Volumes => FRONT,
            Depth::Everything => FOREIGN_HEAD,
        };
        let mut search = Search {
            layers: Self::default(),
            choice,
            keys,
            head,
            physical: Vec::new(),
            raid: Vec::new(),
        };
        let mut round = search.roots(disk)?;
        for _ in 0..MAX_ROUNDS {
            let mut next = Vec::new();
            for node in round {
                next.extend(search.expand(node)?);
            }
            if next.is_empty() {
                next = search.arrays();
            }
            if next.is_empty() {
                next = search.groups();
            }
            if next.is_empty() {
                return Ok(search.layers);
            }
            round = next;
        }
        search.layers.notes.push(format!("what is more than {MAX_ROUNDS} deep is not looked at"));
        Ok(search.layers)
    }
}

struct Search<'c> {
    layers: Layers,
    choice: &'c Choice,
    keys: &'c Keys,
    /// Bytes of each device that are looked at.
    head: usize,
    /// Physical volumes of which nothing is made yet, with their numbers.
    physical: Vec<(usize, PhysicalVolume)>,
    /// The same of members of arrays.
    raid: Vec<(usize, Member)>,
}

impl Search<'_> {
    fn roots(&mut self, disk: &Arc<dyn BlockDevice>) -> Result<Vec<usize>, LayerError> {
        let node = Node::new(None, Place::Whole, Ok(Arc::clone(disk)));
        self.layers.nodes.push(Node { contents: self.contents(&**disk)?, ..node });
        if disk.members().is_empty() {
            return Ok(vec![0]);
        }
        let mut members = Vec::new();
        for member in disk.members() {
            let node = Node::new(Some(0), Place::Whole, Ok(Arc::clone(member)));
            members.push(self.layers.nodes.len());
            self.layers.nodes.push(Node { contents: self.contents(&**member)?, ..node });
        }
        Ok(members)
    }

    /// The devices that are in a device, as far as it needs no others for them.
    fn expand(&mut self, number: usize) -> Result<Vec<usize>, LayerError> {
        let node = &self.layers.nodes[number];
        let Ok(device) = &node.device else { return Ok(Vec::new()) };
        let device = Arc::clone(device);
        let kind = node.contents.as_ref().map(|found| found.kind);
        let is_root = node.place == Place::Whole;
        match kind {
            Some(ForeignKind::Member) => match self.member(number, &device, is_root)? {
                Some(inside) => Ok(inside),
                // What is at the end of a disk may be that of its last partition.
                None => {
                    self.layers.nodes[number].contents = recognise(&self.front(&*device)?);
                    self.table(number, &device, is_root)
                }
            },
            Some(ForeignKind::Table) => self.table(number, &device, is_root),
            // The front of a table may be damaged, and its copy sound.
            None if is_root && device.capacity() > Sector::ZERO => {
                self.table(number, &device, is_root)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn member(
        &mut self,
        number: usize,
        device: &Arc<dyn BlockDevice>,
        is_root: bool,
    ) -> Result<Option<Vec<usize>>, LayerError> {
        match self.made_of(number, device) {
            Ok(inside) => Ok(inside),
            Err(error @ LayerError::Device(_)) if is_root => Err(error),
            Err(error) => {
                let node = &mut self.layers.nodes[number];
                node.is_locked =
                    matches!(error, LayerError::Locked { .. } | LayerError::WrongKey { .. });
                node.fault = Some(in_words(&error));
                Ok(Some(Vec::new()))
            }
        }
    }

    /// What a member is made of, or made part of later; `None` if it is none after all.
    fn made_of(
        &mut self,
        number: usize,
        device: &Arc<dyn BlockDevice>,
    ) -> Result<Option<Vec<usize>>, LayerError> {
        if let Some(member) = Member::read(device)? {
            let name = Some(member.array_name()).filter(|name| !name.is_empty());
            self.describe(number, name, member.array_id());
            self.raid.push((number, member));
        } else if let Some(volume) = PhysicalVolume::read(device)? {
            self.describe(number, volume.group(), volume.id());
            self.physical.push((number, volume));
        } else if let Some(container) = Container::read(device)? {
            self.describe(number, None, container.uuid().to_owned());
            let device = Ok(container.open(self.keys)?);
            let node = Node::new(Some(number), Place::Decrypted, device);
            return Ok(Some(self.add(vec![node])));
        } else {
            return Ok(None);
        }
        Ok(Some(Vec::new()))
    }

    /// Adds to what is known of the contents of a device.
    fn describe(&mut self, number: usize, label: Option<&str>, uuid: String) {
        if let Some(found) = &mut self.layers.nodes[number].contents {
            found.label = label.map(|label| label.as_bytes().to_vec());
            found.uuid = Some(uuid);
        }
    }

    fn table(
        &mut self,
        number: usize,
        disk: &Arc<dyn BlockDevice>,
        is_root: bool,
    ) -> Result<Vec<usize>, LayerError> {
        let table = match PartitionTable::read(&**disk) {
            Ok(table) => table,
            // A device that fails is not asked again: each answer may take as long as it may.
            Err(error @ PartitionError::Device(_)) if is_root => return Err(error.into()),
            Err(PartitionError::NoTable { .. }) => return Ok(Vec::new()),
            Err(error) => {
                self.layers.nodes[number].fault = Some(in_words(&error));
                return Ok(Vec::new());
            }
        };
        if !table.partitions.is_empty() {
            self.layers.nodes[number].table = Some(table.scheme);
        }
        let inside = table.partitions.into_iter().map(|partition| {
            let device = partition.open(disk).map(|device| Arc::new(device) as _);
            let device = device.map_err(|_| "behind the end of the disk".to_owned());
            let bytes = partition.length.to_bytes().unwrap_or(u64::MAX);
            Node { bytes, ..Node::new(Some(number), Place::Partition(partition), device) }
        });
        Ok(self.add(inside.collect()))
    }

    /// Makes arrays of their members, once there is nothing else to look at.
    fn arrays(&mut self) -> Vec<usize> {
        let (numbers, members): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.raid).into_iter().unzip();
        let mut inside = Vec::new();
        for array in raid::arrays(&members) {
            self.layers.notes.extend_from_slice(array.notes());
            let Some(first) = array.members().first() else { continue };
            let name = members[*first].array_name().to_owned();
            let place = Place::Array { name, level: array.level() };
            let device = array.open().map_err(|error| in_words(&error));
            inside.push(Node::new(Some(numbers[*first]), place, device));
        }
        self.add(inside)
    }

    /// Makes logical volumes of physical ones, once there is nothing else to look at.
    fn groups(&mut self) -> Vec<usize> {
        let (numbers, volumes): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.physical).into_iter().unzip();
        let (groups, others) = lvm::groups(&volumes);
        for (volume, why) in others {
            self.layers.nodes[numbers[volume]].fault = Some(in_words(&why));
        }
        let mut inside = Vec::new();
        for group in groups {
            self.layers.notes.extend_from_slice(group.notes());
            let parent = group.members().first().map(|volume| numbers[*volume]);
            inside.extend(group.volumes().map(|volume| {
                let device = group.open(&volume.name).map_err(|error| in_words(&error));
                let group = group.name().to_owned();
                let place = Place::Logical { group, name: volume.name, id: volume.id };
                Node { bytes: volume.bytes, ..Node::new(parent, place, device) }
            }));
        }
        self.add(inside)
    }

    /// Adds devices; returns the numbers of those that are to be looked into.
    fn add(&mut self, nodes: Vec<Node>) -> Vec<usize> {
        let first = self.layers.nodes.len();
        for mut node in nodes {
            if self.layers.nodes.len() == MAX_NODES {
                let note = format!("only the first {MAX_NODES} devices are looked at");
                self.layers.notes.push(note);
                break;
            }
            if let Ok(device) = &node.device {
                match self.contents(&**device) {
                    Ok(contents) => node.contents = contents,
                    Err(error) => node.fault = Some(in_words(&error)),
                }
            }
            self.layers.nodes.push(node);
        }
        let added = first..self.layers.nodes.len();
        let is_named =
            |number: &usize| self.layers.nodes[*number].is_named_by(self.choice) != (false, false);
        match added.clone().any(|number| is_named(&number)) {
            true => added.filter(is_named).collect(),
            false => added.collect(),
        }
    }

    /// The first bytes of a device.
    fn front(&self, device: &dyn BlockDevice) -> Result<Vec<u8>, BlockError> {
        let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX).min(self.head as u64);
        match bytes {
            0 => Ok(Vec::new()),
            _ => Ok(read_buffer(device, Sector::ZERO, bytes as usize)?.to_vec()),
        }
    }

    fn contents(&self, device: &dyn BlockDevice) -> Result<Option<Foreign>, BlockError> {
        let head = self.front(device)?;
        if head.is_empty() {
            return Ok(None);
        }
        let found = recognise(&head);
        if found.as_ref().is_some_and(|found| found.kind == ForeignKind::Member)
            || fills(&head, device.capacity())
        {
            return Ok(found);
        }
        let length = device.capacity().min(Sector(FOREIGN_END as u64 / SECTOR_SIZE));
        let start = Sector(device.capacity().0 - length.0);
        let end = read_buffer(device, start, (length.0 * SECTOR_SIZE) as usize)?;
        let all = device.capacity().to_bytes().unwrap_or(u64::MAX);
        Ok(recognise_end(&end, all).or(found))
    }
}

impl Node {
    fn new(
        parent: Option<usize>,
        place: Place,
        device: Result<Arc<dyn BlockDevice>, String>,
    ) -> Self {
        let capacity = device.as_ref().map_or(Sector::ZERO, |device| device.capacity());
        let bytes = capacity.to_bytes().unwrap_or(u64::MAX);
        let (contents, table, fault, is_locked) = (None, None, None, false);
        Self { parent, place, bytes, device, contents, table, fault, is_locked }
    }
}

/// Whether a device begins with a volume that leaves no room for a superblock behind it.
fn fills(head: &[u8], capacity: Sector) -> bool {
    const SUPERBLOCK: u64 = 4096;
    if !head.starts_with(b"XFSB") {
        return false;
    }
    let bytes = u64::from(be32(head, 4)).checked_mul(be64(head, 8));
    let all = capacity.to_bytes().unwrap_or(u64::MAX);
    bytes.is_some_and(|bytes| all.saturating_sub(bytes) < SUPERBLOCK)
}

/// An error with its causes.
fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}
