//! What a device holds before it is overwritten.

use undercroft_block::partition::{PartitionTable, Scheme};
use undercroft_block::{BlockDevice, BlockError, Sector, read_buffer};
use undercroft_source::{FOREIGN_HEAD, Foreign, ForeignKind, recognise};

/// What a superblock of a Linux RAID begins with.
const RAID: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];

/// In words, what would be lost: a file system with its label, a partition table; `None` if nothing
/// is known.
///
/// # Errors
/// The device failed.
pub(super) fn of(device: &dyn BlockDevice) -> Result<Option<String>, BlockError> {
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX);
    // Not above 256 KiB.
    let head = read_buffer(device, Sector::ZERO, bytes.min(FOREIGN_HEAD as u64) as usize)?;
    let found = recognise(&head).filter(Foreign::is_storage);
    if let Some(found) = found.as_ref().filter(|found| found.kind != ForeignKind::Table) {
        return Ok(Some(found.to_string()));
    }
    // The copy at the end counts, too.
    if let Ok(table) = PartitionTable::read(device)
        && !table.partitions.is_empty()
    {
        let scheme = match table.scheme {
            Scheme::Gpt => "GPT",
            Scheme::Mbr => "MBR",
        };
        let numbers = table.numbers();
        return Ok(Some(format!("a partition table ({scheme}) with the partitions {numbers}")));
    }
    if let Some(found) = found {
        return Ok(Some(found.to_string()));
    }
    let is_member = ends_in_raid(device)?;
    Ok(is_member.then(|| "a member of a Linux RAID".to_owned()))
}

/// Whether a device has the superblock of a RAID at its end, where versions 0.90 and 1.0 have it.
fn ends_in_raid(device: &dyn BlockDevice) -> Result<bool, BlockError> {
    let sectors = device.capacity().0;
    let places = [(sectors & !127).checked_sub(128), (sectors & !7).checked_sub(16)];
    for place in places.into_iter().flatten() {
        // Whole blocks of any device.
        if read_buffer(device, Sector(place & !7), 4096)?.starts_with(&RAID) {
            return Ok(true);
        }
    }
    Ok(false)
}
