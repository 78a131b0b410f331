//! GUID partition tables (UEFI specification, section 5.3), of disks with blocks of 512 or 4096
//! bytes, from either copy.

use super::entry::Partition;
use super::error::PartitionError;
use super::guid::Guid;
use super::kind::PartitionKind;
use crate::device::BlockDevice;
use crate::memory::is_zero;
use crate::plug::{flush, read_exact_at, write_all_at};
use crate::units::{SECTOR_SIZE, Sector};

pub(super) const MAGIC: &[u8; 8] = b"EFI PART";
pub(super) const HEADER_MIN: usize = 92;
const HEADER_CRC: usize = 16;
pub(super) const ENTRY_MIN: u32 = 128;
/// Characters of a partition's name, in UTF-16.
pub const GPT_NAME_MAX: usize = 36;
const ENTRY_MAX: u32 = 4096;
/// Largest table read: eight times what tools write by default fits.
const TABLE_MAX: u64 = 1 << 20;

/// The description of the table in the header of a sound copy.
struct Header {
    block_size: u64,
    table: u64,
    count: u32,
    entry_size: u32,
    table_crc: u32,
}

/// The partitions of the first sound copy; `None` without a table.
pub(super) fn read(device: &dyn BlockDevice) -> Result<Option<Vec<Partition>>, PartitionError> {
    let capacity = device.capacity().0;
    let mut damage = None;
    for block_size in [512, 4096] {
        let sectors = block_size / SECTOR_SIZE;
        let backup = (capacity / sectors).checked_sub(1);
        for block in [Some(1), backup].into_iter().flatten() {
            match copy(device, block, block_size)? {
                Copy::Absent => {}
                Copy::Sound(copy) => return Ok(Some(copy.partitions())),
                Copy::Damaged(what) => damage = damage.or(Some(what)),
            }
        }
    }
    match damage {
        Some(what) => Err(PartitionError::Damaged { device: device.name().to_owned(), what }),
        None => Ok(None),
    }
}

enum Copy {
    Absent,
    Sound(Box<SoundCopy>),
    Damaged(String),
}

pub(super) struct SoundCopy {
    header_at: Sector,
    header_sector: [u8; SECTOR_SIZE as usize],
    header: Header,
    table_at: Sector,
    table: Vec<u8>,
}

impl SoundCopy {
    fn partitions(&self) -> Vec<Partition> {
        let entries = self.table.chunks_exact(self.header.entry_size as usize).zip(1..);
        let per_block = self.header.block_size / SECTOR_SIZE;
        entries.filter_map(|(entry, number)| partition(entry, number, per_block)).collect()
    }
}

fn copy(device: &dyn BlockDevice, block: u64, block_size: u64) -> Result<Copy, PartitionError> {
    // The block is 1 or on the device: no overflow.
    let header_at = Sector(block * (block_size / SECTOR_SIZE));
    if header_at >= device.capacity() {
        return Ok(Copy::Absent);
    }
    let mut header_sector = [0; SECTOR_SIZE as usize];
    read_exact_at(device, header_at, &mut header_sector)?;
    if !header_sector.starts_with(MAGIC) {
        return Ok(Copy::Absent);
    }
    let header = match header(&header_sector, block, block_size) {
        Ok(header) => header,
        Err(what) => return Ok(Copy::Damaged(what)),
    };
    Ok(match table(device, &header)? {
        Ok((table_at, table)) => {
            let copy = SoundCopy { header_at, header_sector, header, table_at, table };
            Copy::Sound(Box::new(copy))
        }
        Err(what) => Copy::Damaged(what),
    })
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at + 4)) << 32 | u64::from(le32(bytes, at))
}

/// Checks the header in a sector of 512 bytes; returns its defect.
fn header(
    bytes: &[u8; SECTOR_SIZE as usize],
    block: u64,
    block_size: u64,
) -> Result<Header, String> {
    let size = le32(bytes, 12) as usize;
    if !(HEADER_MIN..=bytes.len()).contains(&size) {
        return Err(format!("header of {size} bytes at block {block}"));
    }
    let mut summed = bytes[..size].to_vec();
    summed[HEADER_CRC..HEADER_CRC + 4].fill(0);
    if crc32fast::hash(&summed) != le32(bytes, HEADER_CRC) {
        return Err(format!("checksum of the header at block {block} does not match"));
    }
    if le64(bytes, 24) != block {
        return Err(format!("the header at block {block} says it is at {}", le64(bytes, 24)));
    }
    let (count, entry_size) = (le32(bytes, 80), le32(bytes, 84));
    if !(ENTRY_MIN..=ENTRY_MAX).contains(&entry_size)
        || u64::from(count) * u64::from(entry_size) > TABLE_MAX
    {
        return Err(format!("a table of {count} entries of {entry_size} bytes"));
    }
    let (table, table_crc) = (le64(bytes, 72), le32(bytes, 88));
    Ok(Header { block_size, table, count, entry_size, table_crc })
}

/// Where the table of a header is, and its bytes, or its defect.
fn table(
    device: &dyn BlockDevice,
    header: &Header,
) -> Result<Result<(Sector, Vec<u8>), String>, PartitionError> {
    let per_block = header.block_size / SECTOR_SIZE;
    let bytes = u64::from(header.count) * u64::from(header.entry_size);
    let length = Sector::covering(bytes);
    let place = header.table.checked_mul(per_block).map(Sector);
    let inside = place
        .and_then(|start| start.checked_add(length))
        .is_some_and(|end| end <= device.capacity());
    let (Some(place), true) = (place, inside) else {
        return Ok(Err(format!("the table at block {} is not on it", header.table)));
    };
    // At most a mebibyte and a sector.
    let mut table = vec![0; (length.0 * SECTOR_SIZE) as usize];
    if !table.is_empty() {
        read_exact_at(device, place, &mut table)?;
    }
    table.truncate(bytes as usize);
    if crc32fast::hash(&table) != header.table_crc {
        return Ok(Err(format!("checksum of the table at block {} does not match", header.table)));
    }
    Ok(Ok((place, table)))
}

/// Makes a partition end after its first `length` sectors, no more than it has, in both copies,
/// which must be sound.
pub(super) fn shorten(
    device: &dyn BlockDevice,
    old: &Partition,
    length: Sector,
) -> Result<(), PartitionError> {
    for copy in shortened_copies(device, old, length)? {
        write_all_at(device, copy.table_at, &copy.table)?;
        write_all_at(device, copy.header_at, &copy.header_sector)?;
        flush(device)?;
    }
    Ok(())
}

/// Both copies, the one at the end first, as [`shorten`] writes them.
pub(super) fn shortened_copies(
    device: &dyn BlockDevice,
    old: &Partition,
    length: Sector,
) -> Result<Vec<SoundCopy>, PartitionError> {
    let number = old.number;
    let refused =
        |what| PartitionError::Unchangeable { device: device.name().to_owned(), number, what };
    let mut defect = "neither copy of the table is sound".to_owned();
    for block_size in [512, 4096] {
        let (sectors, mut copies) = (block_size / SECTOR_SIZE, Vec::new());
        // As many as a block and more.
        for block in [(device.capacity().0 / sectors).saturating_sub(1), 1] {
            match shortened(device, block, block_size, old, length)? {
                Ok(copy) => copies.push(copy),
                Err(what) if !copies.is_empty() => defect = what,
                Err(what) => defect = format!("the copy at the end: {what}"),
            }
        }
        if copies.len() == 2 {
            return Ok(copies);
        }
    }
    Err(refused(defect))
}

/// The copy whose header is at a block, with a partition ending after its first `length` sectors; or
/// its defect.
fn shortened(
    device: &dyn BlockDevice,
    block: u64,
    block_size: u64,
    old: &Partition,
    length: Sector,
) -> Result<Result<SoundCopy, String>, PartitionError> {
    let mut changed = match copy(device, block, block_size)? {
        Copy::Sound(copy) => *copy,
        Copy::Damaged(what) => return Ok(Err(what)),
        Copy::Absent => return Ok(Err(format!("no header at block {block}"))),
    };
    let SoundCopy { header_sector, header, table, .. } = &mut changed;
    let sectors = block_size / SECTOR_SIZE;
    let mut entries = table.chunks_exact_mut(header.entry_size as usize).zip(1..);
    let same = |(entry, number): &(&mut [u8], u32)| {
        partition(entry, *number, sectors).as_ref() == Some(old)
    };
    let Some((entry, _)) = entries.find(same) else {
        return Ok(Err("it has another entry".into()));
    };
    // No more than the old one.
    let last = le64(entry, 32) + (length.0.div_ceil(sectors) - 1);
    entry[40..48].copy_from_slice(&last.to_le_bytes());
    put_checksums(header_sector, table);
    // Whole sectors are written; behind the table is nothing.
    table.resize(table.len().next_multiple_of(SECTOR_SIZE as usize), 0);
    Ok(Ok(changed))
}

/// Puts the checksums of a table and of the header itself into the bytes of the header.
pub(super) fn put_checksums(header: &mut [u8], table: &[u8]) {
    header[88..92].copy_from_slice(&crc32fast::hash(table).to_le_bytes());
    let size = le32(header, 12) as usize;
    header[HEADER_CRC..HEADER_CRC + 4].fill(0);
    let sum = crc32fast::hash(&header[..size]);
    header[HEADER_CRC..HEADER_CRC + 4].copy_from_slice(&sum.to_le_bytes());
}

/// The name in an entry, up to its first zero.
fn name(entry: &[u8]) -> String {
    let units = entry[56..56 + 2 * GPT_NAME_MAX].chunks_exact(2);
    let units =
        units.map(|unit| u16::from_le_bytes([unit[0], unit[1]])).take_while(|unit| *unit != 0);
    char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The partition of an entry; `None` for one that is not in use or ends before it starts.
fn partition(entry: &[u8], number: u32, sectors_per_block: u64) -> Option<Partition> {
    if is_zero(&entry[..16]) {
        return None;
    }
    let (first, last) = (le64(entry, 32), le64(entry, 40));
    let length = last.checked_sub(first)?.checked_add(1)?.checked_mul(sectors_per_block)?;
    let start = first.checked_mul(sectors_per_block)?;
    let kind = PartitionKind::Gpt(Guid(*entry.first_chunk()?));
    let (start, length) = (Sector(start), Sector(length));
    Some(Partition { number, start, length, kind, name: name(entry) })
}
