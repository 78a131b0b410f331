//! The part of an image that is the volume.

use super::contents;
use crate::failure::Usage;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt;
use std::sync::Arc;
use undercroft_block::partition::{Partition, PartitionError, PartitionTable};
use undercroft_block::{BlockDevice, Sector, Window};

/// The part of an image that is the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of the image, or of a disk with partitions the only one that has a volume.
    #[default]
    Found,
    /// All of the image, as a server of devices takes it.
    Whole,
    /// Everything from this byte.
    Offset(u64),
    /// A partition.
    Partition(PartitionChoice),
}

impl Part {
    /// Of the values of two options that exclude each other; `otherwise` without either.
    pub(crate) fn of(
        offset: Option<u64>,
        partition: Option<&PartitionChoice>,
        otherwise: Self,
    ) -> Self {
        let of_partition = || partition.cloned().map(Self::Partition);
        offset.map(Self::Offset).or_else(of_partition).unwrap_or(otherwise)
    }
}

/// A partition, as an option names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartitionChoice {
    /// Its number.
    Number(u32),
    /// Its name in the table, or the label of what it holds.
    Name(String),
}

impl PartitionChoice {
    /// From the value of an option.
    pub(crate) fn of(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number)
    }
}

impl From<String> for PartitionChoice {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl fmt::Display for PartitionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => write!(f, "\"{}\"", name.escape_debug()),
        }
    }
}

/// The device that a part of a disk is, and the partition that was chosen.
pub(super) fn open(
    disk: Arc<dyn BlockDevice>,
    part: &Part,
) -> Result<(Arc<dyn BlockDevice>, Option<Partition>)> {
    match part {
        Part::Whole => Ok((disk, None)),
        Part::Found => match only_volume(&disk)? {
            Some(partition) => Ok((Arc::new(partition.open(&disk)?), Some(partition))),
            None => Ok((disk, None)),
        },
        Part::Offset(offset) => Ok((from_offset(disk, *offset)?, None)),
        Part::Partition(choice) => {
            let partition = choose(&disk, choice)?;
            Ok((Arc::new(partition.open(&disk)?), Some(partition)))
        }
    }
}

fn from_offset(disk: Arc<dyn BlockDevice>, offset: u64) -> Result<Arc<dyn BlockDevice>> {
    let start = Sector::from_bytes(offset)
        .ok_or_else(|| Usage(format!("--offset {offset} is not a multiple of 512")))?;
    let capacity = disk.capacity();
    let window = Window::from_sector(disk, start).with_context(|| {
        format!("--offset {offset} is behind the end of the image, which has {capacity} sectors")
    })?;
    Ok(Arc::new(window))
}

/// The only partition with a volume, of a disk that has none itself.
fn only_volume(disk: &Arc<dyn BlockDevice>) -> Result<Option<Partition>> {
    if contents::is_volume(&**disk)? {
        return Ok(None);
    }
    let table = match PartitionTable::read(&**disk) {
        Ok(table) => table,
        // One that fails is not asked again: each answer may take as long as it may.
        Err(error @ PartitionError::Device(_)) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let is_one = |partition: &Partition| {
        let device = partition.open(disk);
        device.is_ok_and(|device| contents::is_volume(&device).unwrap_or(false))
    };
    let mut volumes = table.partitions.into_iter().filter(is_one);
    Ok(volumes.next().filter(|_| volumes.next().is_none()))
}

/// The partition that an option names.
fn choose(disk: &Arc<dyn BlockDevice>, choice: &PartitionChoice) -> Result<Partition> {
    let table = match PartitionTable::read(&**disk) {
        Ok(table) => table,
        Err(error) => match contents::of(&**disk).filter(contents::is_container) {
            Some(found) => bail!("it is {found}, which is not read: {}", contents::way(&found)),
            None => return Err(error.into()),
        },
    };
    let label = |partition: &Partition| contents::of(&partition.open(disk).ok()?)?.label;
    let named = |partition: &&Partition| match choice {
        PartitionChoice::Number(number) => partition.number == *number,
        PartitionChoice::Name(name) => {
            partition.name == *name || label(partition).is_some_and(|is| is == name.as_bytes())
        }
    };
    let mut found = table.partitions.iter().filter(named);
    let list = || contents::list(&contents::held(disk, &table));
    let first =
        found.next().with_context(|| format!("there is no partition {choice}: {}", list()))?;
    if found.next().is_some() {
        return Err(anyhow!("several partitions are called {choice}; take a number: {}", list()));
    }
    Ok(first.clone())
}
