//! What an image holds that is no volume, and the way on.

use crate::text;
use std::sync::Arc;
use undercroft_block::partition::{Partition, PartitionTable};
use undercroft_block::{BlockDevice, BlockError, SECTOR_SIZE, Sector, read_buffer};
use undercroft_source::{FOREIGN_HEAD, Foreign, ForeignKind, recognise};

/// What a device holds, if it is known.
pub(super) fn of(device: &dyn BlockDevice) -> Option<Foreign> {
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

/// The label of what is in a partition.
pub(super) fn label(disk: &Arc<dyn BlockDevice>, partition: &Partition) -> Option<Vec<u8>> {
    of(&partition.open(disk).ok()?)?.label
}

fn head(device: &dyn BlockDevice, most: u64) -> Result<Vec<u8>, BlockError> {
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX).min(most);
    if bytes == 0 {
        return Ok(Vec::new());
    }
    // No more than what is recognised.
    Ok(read_buffer(device, Sector::ZERO, bytes as usize)?.to_vec())
}

/// The partitions of a disk: number, what each is for, name, length, contents.
pub(super) fn list(disk: &Arc<dyn BlockDevice>, table: &PartitionTable) -> String {
    let describe = |partition: &Partition| {
        let Partition { number, kind, name, length, .. } = partition;
        let bytes = text::bytes(length.to_bytes().unwrap_or(u64::MAX));
        let named = match name.as_str() {
            "" => String::new(),
            name => format!(" \"{}\"", name.escape_debug()),
        };
        let contents = match partition.open(disk) {
            Ok(device) => {
                of(&device).map_or_else(|| "unknown".to_owned(), |found| found.to_string())
            }
            Err(_) => "behind the end of the disk".to_owned(),
        };
        format!("{number} ({kind}{named}, {bytes}): {contents}")
    };
    table.partitions.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// Why there is no volume on a device, and the way on; `None` if it begins as a volume does.
pub(super) fn refusal(device: &Arc<dyn BlockDevice>) -> Option<String> {
    if device.capacity() == Sector::ZERO {
        return None;
    }
    let found = of(&**device);
    match &found {
        Some(found) if found.kind == ForeignKind::Volume => return None,
        Some(found) if found.kind != ForeignKind::Table => return Some(unusable(found)),
        _ => {}
    }
    if let Ok(table) = PartitionTable::read(&**device)
        && !table.partitions.is_empty()
    {
        let volumes = table.partitions.iter().filter_map(|partition| partition.open(device).ok());
        let how = match volumes.filter(|device| is_volume(device).unwrap_or(false)).count() {
            0 => "none of them with XFS",
            _ => "choose one with --partition, by number, name or label",
        };
        return Some(format!("it is a disk with partitions, {how}: {}", list(device, &table)));
    }
    let is_empty = head(device.as_ref(), FOREIGN_HEAD as u64)
        .is_ok_and(|head| head.iter().all(|byte| *byte == 0));
    let what = if is_empty { "begins with zeroes" } else { "begins with nothing that is known" };
    Some(format!(
        "it {what}, and not with an XFS volume; --offset says where one starts that starts later"
    ))
}

/// What to do with contents that are not read.
pub(super) fn unusable(found: &Foreign) -> String {
    match found.kind {
        ForeignKind::FileSystem => format!("it holds {found}, not XFS; {}", found.way),
        _ => format!("it is {found}: {}", found.way),
    }
}
