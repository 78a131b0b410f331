//! What an image holds that is no volume, and the way on.

use crate::text;
use std::sync::Arc;
use undercroft_block::partition::{Partition, PartitionTable};
use undercroft_block::{BlockDevice, BlockError, SECTOR_SIZE, Sector, read_buffer};
use undercroft_source::{FOREIGN_HEAD, Foreign, ForeignKind, recognise};

/// What a device holds, if it is known.
pub(crate) fn of(device: &dyn BlockDevice) -> Option<Foreign> {
    recognise(&head(device, FOREIGN_HEAD as u64).ok()?)
}

/// Whether a device begins as a volume does.
pub(super) fn is_volume(device: &dyn BlockDevice) -> Result<bool, BlockError> {
    let found = recognise(&head(device, SECTOR_SIZE)?);
    Ok(found.is_some_and(|found| found.kind == ForeignKind::Volume))
}

pub(super) fn is_container(found: &Foreign) -> bool {
    found.kind == ForeignKind::Container
}

fn head(device: &dyn BlockDevice, most: u64) -> Result<Vec<u8>, BlockError> {
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX).min(most);
    if bytes == 0 {
        return Ok(Vec::new());
    }
    // No more than what is recognised.
    Ok(read_buffer(device, Sector::ZERO, bytes as usize)?.to_vec())
}

/// A partition, and what it holds, if that is known.
pub(crate) struct Held<'t> {
    pub(crate) partition: &'t Partition,
    pub(crate) contents: Option<Foreign>,
    /// Whether it is on the disk to its end.
    pub(crate) is_on_disk: bool,
}

/// The partitions of a disk, with what they hold.
pub(crate) fn held<'t>(disk: &Arc<dyn BlockDevice>, table: &'t PartitionTable) -> Vec<Held<'t>> {
    let look = |partition: &'t Partition| {
        let device = partition.open(disk).ok();
        let contents = device.as_ref().and_then(|device| of(device));
        Held { partition, contents, is_on_disk: device.is_some() }
    };
    table.partitions.iter().map(look).collect()
}

/// Partitions in words: number, what each is for, name, length, contents.
pub(super) fn list(partitions: &[Held<'_>]) -> String {
    let describe = |Held { partition, contents, is_on_disk }: &Held<'_>| {
        let Partition { number, kind, name, length, .. } = partition;
        let bytes = text::bytes(length.to_bytes().unwrap_or(u64::MAX));
        let named = match name.as_str() {
            "" => String::new(),
            name => format!(" \"{}\"", name.escape_debug()),
        };
        let contents = match contents {
            Some(found) => found.to_string(),
            None if *is_on_disk => "unknown".to_owned(),
            None => "behind the end of the disk".to_owned(),
        };
        format!("{number} ({kind}{named}, {bytes}): {contents}")
    };
    partitions.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Why there is no volume on a device, and the way on; `None` if it begins as a volume does.
pub(super) fn refusal(device: &Arc<dyn BlockDevice>) -> Option<String> {
    if device.capacity() == Sector::ZERO {
        return None;
    }
    let head = head(device.as_ref(), FOREIGN_HEAD as u64).unwrap_or_default();
    match recognise(&head) {
        Some(found) if found.kind == ForeignKind::Volume => return None,
        Some(found) if found.kind != ForeignKind::Table => return Some(unusable(&found)),
        _ => {}
    }
    if let Ok(table) = PartitionTable::read(&**device)
        && !table.partitions.is_empty()
    {
        let partitions = held(device, &table);
        let is_volume = |held: &Held<'_>| {
            held.contents.as_ref().is_some_and(|found| found.kind == ForeignKind::Volume)
        };
        let how = if partitions.iter().any(is_volume) {
            "choose one with --partition, by number, name or label"
        } else {
            "none of them with XFS"
        };
        return Some(format!("it is a disk with partitions, {how}: {}", list(&partitions)));
    }
    let is_empty = !head.is_empty() && head.iter().all(|byte| *byte == 0);
    let what = if is_empty { "begins with zeroes" } else { "begins with nothing that is known" };
    Some(format!(
        "it {what}, and not with an XFS volume; --offset says where one starts that starts later"
    ))
}

/// What to do with contents that are not read.
pub(super) fn unusable(found: &Foreign) -> String {
    match found.kind {
        ForeignKind::FileSystem => format!("it holds {found}, not XFS; {}", way(found)),
        _ => format!("it is {found}: {}", way(found)),
    }
}

/// The way from contents to a volume, with the commands that it takes.
pub(super) fn way(found: &Foreign) -> &'static str {
    match found.kind {
        ForeignKind::FileSystem => {
            "mount it; `undercroft build DIRECTORY NEW` makes an XFS volume of what is in it"
        }
        ForeignKind::Archive => {
            "unpack it; `undercroft build DIRECTORY NEW` makes a volume of what is in it"
        }
        ForeignKind::Tar => "`undercroft build` makes a volume of it",
        ForeignKind::Table => "choose a partition with --partition",
        _ => found.way,
    }
}
