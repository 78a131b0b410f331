//! Master boot records and the chain of extended ones that holds logical partitions.

use super::entry::Partition;
use super::error::PartitionError;
use super::kind::PartitionKind;
use crate::device::BlockDevice;
use crate::plug::{flush, read_exact_at, write_all_at};
use crate::units::{SECTOR_SIZE, Sector};

const TABLE: usize = 446;
const ENTRY: usize = 16;
const SIGNATURE: [u8; 2] = [0x55, 0xaa];
/// Number of the last primary partition.
pub(super) const PRIMARY: u32 = 4;
/// Cylinder, head and sector of an end that these cannot tell.
const FAR: [u8; 3] = [0xfe, 0xff, 0xff];
/// Types of the partition that holds the logical ones.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
/// Logical partitions read before a chain counts as endless.
const LOGICAL_MAX: u32 = 256;

#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    start: u64,
    length: u64,
}

/// The partitions of the boot record in sector 0; `None` without one.
pub(super) fn read(device: &dyn BlockDevice) -> Result<Option<Vec<Partition>>, PartitionError> {
    let Some(entries) = record(device, 0)? else {
        return Ok(None);
    };
    let mut partitions = Vec::new();
    for (entry, number) in entries.into_iter().zip(1..) {
        if entry.kind != 0 && !EXTENDED.contains(&entry.kind) {
            partitions.extend(partition(number, 0, entry));
        }
    }
    if let Some(extended) = entries.iter().find(|entry| EXTENDED.contains(&entry.kind)) {
        logical(device, extended.start, &mut partitions)?;
    }
    Ok(Some(partitions))
}

/// Follows the chain: each record has one logical partition, relative to the record, and the next
/// record, relative to the first.
fn logical(
    device: &dyn BlockDevice,
    first: u64,
    partitions: &mut Vec<Partition>,
) -> Result<(), PartitionError> {
    let mut place = first;
    for number in 5..5 + LOGICAL_MAX {
        let Some([own, next, ..]) = record(device, place)? else {
            break;
        };
        if own.kind != 0 {
            partitions.extend(partition(number, place, own));
        }
        if !EXTENDED.contains(&next.kind) {
            break;
        }
        // Both have 32 bits.
        place = first + next.start;
    }
    Ok(())
}

fn partition(number: u32, base: u64, entry: Entry) -> Option<Partition> {
    (entry.length > 0).then_some(Partition {
        number,
        start: Sector(base + entry.start),
        length: Sector(entry.length),
        kind: PartitionKind::Mbr(entry.kind),
        name: String::new(),
    })
}

/// Makes a primary partition end after its first `length` sectors, fewer than it has.
pub(super) fn shorten(
    device: &dyn BlockDevice,
    number: u32,
    length: Sector,
) -> Result<(), PartitionError> {
    let mut bytes = [0; SECTOR_SIZE as usize];
    read_exact_at(device, Sector(0), &mut bytes)?;
    let entry = &mut bytes[TABLE + (number as usize - 1) * ENTRY..][..ENTRY];
    entry[5..8].copy_from_slice(&FAR);
    // Fewer than 32 bits tell.
    entry[12..].copy_from_slice(&(length.0 as u32).to_le_bytes());
    write_all_at(device, Sector(0), &bytes)?;
    Ok(flush(device)?)
}

/// The four entries of a record; `None` if there is no record at `sector`.
fn record(device: &dyn BlockDevice, sector: u64) -> Result<Option<[Entry; 4]>, PartitionError> {
    if sector >= device.capacity().0 {
        return Ok(None);
    }
    let mut bytes = [0; SECTOR_SIZE as usize];
    read_exact_at(device, Sector(sector), &mut bytes)?;
    if !bytes.ends_with(&SIGNATURE) {
        return Ok(None);
    }
    let le32 = |at: usize| {
        bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    Ok(Some([0, 1, 2, 3].map(|index| {
        let at = TABLE + index * ENTRY;
        Entry { kind: bytes[at + 4], start: le32(at + 8), length: le32(at + 12) }
    })))
}
