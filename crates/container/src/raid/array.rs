//! Members put together to arrays.

use super::superblock::{Level, Role, Superblock};
use super::{version0, version1};
use crate::layer_error::LayerError;
use std::collections::BTreeMap;
use std::sync::Arc;
use undercroft_block::partition::PartitionTable;
use undercroft_block::stack::{Linear, Mirror, Stripe};
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, Window, read_buffer};

/// Members that an array may have.
const MAX_MEMBERS: usize = 256;
const ASSEMBLE: &str = "`mdadm --assemble` makes the array a disk: name that";
const NAME_ALL: &str = "name all disks of the array, as in 'raid(a.img,b.img)'";

/// A device with a superblock.
#[derive(Debug)]
pub struct Member {
    device: Arc<dyn BlockDevice>,
    superblock: Superblock,
}

/// An array, of which not all members need to be there.
#[derive(Debug)]
pub struct Array<'m> {
    /// The superblock with the latest changes.
    newest: &'m Superblock,
    /// The members with data that are there, by what they are.
    active: BTreeMap<usize, &'m Member>,
    numbers: Vec<usize>,
    notes: Vec<String>,
}

impl Member {
    /// Reads the superblock of a device; `None` without one.
    ///
    /// # Errors
    /// The device fails, or the superblock is damaged.
    pub fn read(device: &Arc<dyn BlockDevice>) -> Result<Option<Self>, LayerError> {
        type Parse = fn(&[u8], Sector) -> Option<Result<Superblock, String>>;
        let sectors = device.capacity().0;
        let at_end = [
            (sectors.saturating_sub(16) & !7, version1::parse as Parse, false),
            ((sectors & !127).saturating_sub(128), version0::parse as Parse, true),
        ];
        let places = [(0, version1::parse as Parse, false), (8, version1::parse as Parse, false)];
        for (place, parse, is_old) in places.into_iter().chain(at_end) {
            const { assert!(version0::LENGTH == version1::LENGTH) };
            let end = place + version1::LENGTH as u64 / SECTOR_SIZE;
            if end > sectors {
                continue;
            }
            let bytes = read_buffer(&**device, Sector(place), version1::LENGTH)?;
            match parse(&bytes, Sector(place)) {
                None => {}
                Some(Ok(superblock)) if is_old && is_of_partition(&**device, &superblock) => {}
                Some(Ok(superblock)) => {
                    return Ok(Some(Self { device: Arc::clone(device), superblock }));
                }
                Some(Err(fault)) => {
                    let (what, device) = ("the superblock of a RAID".into(), device.name().into());
                    return Err(LayerError::Damaged { what, device, fault });
                }
            }
        }
        Ok(None)
    }

    /// The identifier of its array, as mdadm writes it.
    #[must_use]
    pub fn array_id(&self) -> String {
        let words = self
            .superblock
            .id
            .chunks_exact(4)
            .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        words.collect::<Vec<_>>().join(":")
    }

    /// The name of its array; empty if it has none.
    #[must_use]
    pub fn array_name(&self) -> &str {
        &self.superblock.name
    }

    /// What it is in the array of a superblock, if it has the data of that.
    fn role(&self, newest: &Superblock) -> Option<usize> {
        let own = &self.superblock;
        let is_current = own.events == newest.events && !own.is_recovering;
        match newest.roles.get(own.number) {
            Some(Role::Active(role)) if is_current && *role < newest.members => Some(*role),
            _ => None,
        }
    }
}

/// Whether a superblock at the end of a disk is that of its last partition.
fn is_of_partition(device: &dyn BlockDevice, superblock: &Superblock) -> bool {
    version0::may_be_of_partition(superblock)
        && PartitionTable::read(device).is_ok_and(|table| !table.partitions.is_empty())
}

/// The arrays that members belong to.
#[must_use]
pub fn arrays(members: &[Member]) -> Vec<Array<'_>> {
    let mut by_id = BTreeMap::<[u8; 16], Vec<usize>>::new();
    for (number, member) in members.iter().enumerate() {
        by_id.entry(member.superblock.id).or_default().push(number);
    }
    by_id.into_values().filter_map(|numbers| Array::of(members, numbers)).collect()
}

impl<'m> Array<'m> {
    fn of(members: &'m [Member], numbers: Vec<usize>) -> Option<Self> {
        let own = || numbers.iter().map(|number| &members[*number]);
        let newest = own().map(|member| &member.superblock).max_by_key(|block| block.events)?;
        let mut array =
            Self { newest, active: BTreeMap::new(), numbers: Vec::new(), notes: Vec::new() };
        for member in own() {
            let name = member.device.name();
            match member.role(newest) {
                None => array
                    .notes
                    .push(format!("{name} is left out of its array: it is spare, or out of date")),
                Some(role) if array.active.contains_key(&role) => {
                    array.notes.push(format!(
                        "{name} is left out of its array: it is a copy of another member"
                    ));
                }
                Some(role) => drop(array.active.insert(role, member)),
            }
        }
        array.numbers = numbers;
        Some(array)
    }

    /// The numbers of the members that are part of it.
    #[must_use]
    pub fn members(&self) -> &[usize] {
        &self.numbers
    }

    /// What is odd, but does not keep the array from being read.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its level in words.
    #[must_use]
    pub fn level(&self) -> String {
        match self.newest.level {
            Level::Linear => "linear".into(),
            Level::Stripe => "RAID 0".into(),
            Level::Mirror => "RAID 1".into(),
            Level::MirroredStripe(_) => "RAID 10".into(),
            Level::Other(level) => format!("RAID {level}"),
        }
    }

    /// The device that it is.
    ///
    /// # Errors
    /// It is of a kind that is not read, or too many members are not there, or one is too short.
    pub fn open(&self) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let Superblock { level, members, chunk, obstacle, .. } = self.newest;
        if let Some(kind) = obstacle {
            return Err(self.not_supported(kind));
        }
        if !(1..=MAX_MEMBERS).contains(members) {
            return Err(self.damaged(format!("{members} members")));
        }
        let bytes = chunk.saturating_mul(SECTOR_SIZE);
        match level {
            Level::Linear => {
                let legs = self.each(0..*members, |member| member.window(self, *chunk))?;
                Ok(Arc::new(Linear::new(legs)?))
            }
            Level::Stripe => {
                let legs = self.each(0..*members, |member| member.window(self, *chunk))?;
                // Behind the end of the shortest the others go on, in one of two ways.
                if legs.iter().any(|leg| leg.capacity() != legs[0].capacity()) {
                    return Err(self.not_supported("RAID 0 of members of different lengths"));
                }
                Ok(Arc::new(Stripe::new(bytes, legs)?))
            }
            Level::Mirror => self.mirror(0..*members),
            Level::MirroredStripe(copies) => {
                if !members.is_multiple_of(*copies) {
                    return Err(self.not_supported(&format!(
                        "RAID 10 with {copies} copies on {members} members, which take turns"
                    )));
                }
                let groups = (0..*members).step_by(*copies);
                let legs = groups.map(|first| self.mirror(first..first + copies));
                Ok(Arc::new(Stripe::new(bytes, legs.collect::<Result<_, _>>()?)?))
            }
            Level::Other(level) => Err(self.not_supported(&format!("RAID {level}"))),
        }
    }

    fn each(
        &self,
        roles: std::ops::Range<usize>,
        open: impl Fn(&Member) -> Result<Arc<dyn BlockDevice>, LayerError>,
    ) -> Result<Vec<Arc<dyn BlockDevice>>, LayerError> {
        let leg = |role| match self.active.get(&role) {
            Some(member) => open(member),
            None => Err(self.missing(role)),
        };
        roles.map(leg).collect()
    }

    /// Members that hold the same: all of them if the array lacks none, else one, to be read.
    fn mirror(&self, roles: std::ops::Range<usize>) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let open = |member: &Member| member.window_of(self, self.newest.size);
        if self.active.len() == self.newest.members && self.newest.is_same {
            return Ok(Arc::new(Mirror::new(self.each(roles, open)?)?));
        }
        let first = roles.start;
        let member = roles.into_iter().find_map(|role| self.active.get(&role));
        let member = member.ok_or_else(|| self.missing(first))?;
        Ok(Arc::new(Window::for_reading(open(member)?)))
    }

    fn name(&self) -> String {
        match self.newest.name.as_str() {
            "" => "the array".to_owned(),
            name => format!("the array {}", name.escape_debug()),
        }
    }

    fn damaged(&self, fault: String) -> LayerError {
        let devices: Vec<_> = self.active.values().map(|member| member.device.name()).collect();
        LayerError::Damaged { what: self.name(), device: devices.join(", "), fault }
    }

    fn not_supported(&self, kind: &str) -> LayerError {
        LayerError::NotSupported { what: self.name(), kind: kind.to_owned(), way: ASSEMBLE }
    }

    fn missing(&self, role: usize) -> LayerError {
        let all = self.newest.members;
        let missing = format!("its member {role} of {all} (numbers begin with 0)");
        LayerError::Missing { what: self.name(), missing, way: NAME_ALL }
    }
}

impl Member {
    /// Its data in whole chunks.
    fn window(&self, array: &Array<'_>, chunk: u64) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let Sector(length) = self.superblock.length;
        let usable = if chunk == 0 { length } else { length - length % chunk };
        self.window_of(array, Sector(usable))
    }

    /// So many sectors of its data.
    fn window_of(
        &self,
        array: &Array<'_>,
        length: Sector,
    ) -> Result<Arc<dyn BlockDevice>, LayerError> {
        let start = self.superblock.start;
        let window = Window::new(Arc::clone(&self.device), start, length).ok_or_else(|| {
            let (name, has) = (self.device.name(), self.device.capacity());
            array.damaged(format!(
                "{length} sectors from {start} on of {name}, which has {has}; is the image truncated?"
            ))
        })?;
        Ok(Arc::new(window))
    }
}
