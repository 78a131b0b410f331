//! A physical volume: its label, its areas, and the text of its metadata.
//!
//! The label is in one of the first four sectors and says where the areas of metadata are. Each begins
//! with a header that says where in the rest of the area the text is, which may go on at the front of
//! that rest: it is a ring.

use crate::field::{le32, le64};
use crate::layer_error::LayerError;
use std::ops::Range;
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, read_buffer};

/// Where a label may be.
pub(super) const LABELS: usize = 4 * SECTOR;
const SECTOR: usize = SECTOR_SIZE as usize;
/// What all checksums begin with.
const CHECKSUM: u32 = 0xf597_a6cf;
/// The mark of an area of metadata.
const AREA: &[u8; 16] = b" LVM2 x[5A%r0N*>";
/// Longest text that is read: the group has hundreds of thousands of segments.
const MAX_TEXT: u64 = 32 << 20;
/// A location that does not count.
const IGNORED: u32 = 1;

/// What a physical volume says of itself.
#[derive(Clone, Debug)]
pub(super) struct Physical {
    /// Its identifier, 32 characters.
    pub(super) id: String,
    /// Bytes that are never those of a logical volume.
    pub(super) reserved: Vec<Range<u64>>,
    /// The texts of its areas that are sound.
    pub(super) texts: Vec<String>,
    /// Why others are not.
    pub(super) faults: Vec<String>,
}

/// Reads the label and the metadata of a device; `None` without a label.
pub(super) fn read(device: &dyn BlockDevice) -> Result<Option<Physical>, LayerError> {
    let bytes = device.capacity().to_bytes().unwrap_or(u64::MAX);
    if bytes < LABELS as u64 {
        return Ok(None);
    }
    let head = read_buffer(device, Sector::ZERO, LABELS)?;
    let mut fault = None;
    for (number, sector) in head.chunks_exact(SECTOR).enumerate() {
        if !sector.starts_with(b"LABELONE") {
            continue;
        }
        match label(sector, number as u64) {
            Ok(label) => return of_label(device, bytes, label, number as u64).map(Some),
            Err(found) => fault = Some(found),
        }
    }
    match fault {
        None => Ok(None),
        Some(fault) => {
            let (what, device) = ("the label of LVM".into(), device.name().to_owned());
            Err(LayerError::Damaged { what, device, fault })
        }
    }
}

struct Label {
    id: String,
    /// Start and length in bytes.
    areas: Vec<(u64, u64)>,
}

fn label(sector: &[u8], number: u64) -> Result<Label, String> {
    if le32(sector, 16) != checksum(&sector[20..]) {
        return Err(format!("the checksum of sector {number} is wrong"));
    }
    if le64(sector, 8) != number || &sector[24..32] != b"LVM2 001" {
        return Err(format!("the label in sector {number} is that of another sector or format"));
    }
    let start = le32(sector, 20) as usize;
    let header = sector.get(start..).filter(|header| header.len() >= 40);
    let header = header.ok_or("its header is behind the sector")?;
    let id = header[..32].to_vec();
    if !id.iter().all(u8::is_ascii_alphanumeric) {
        return Err("its identifier has other characters than letters and digits".into());
    }
    // Areas of data, then areas of metadata; each list ends with an area at 0.
    let mut lists = header[40..].chunks_exact(16).map(|area| (le64(area, 0), le64(area, 8)));
    let in_use = |area: &(u64, u64)| area.0 != 0;
    lists.by_ref().take_while(in_use).for_each(drop);
    let areas = lists.take_while(in_use).collect();
    // The bytes are those of ASCII.
    Ok(Label { id: String::from_utf8_lossy(&id).into_owned(), areas })
}

fn of_label(
    device: &dyn BlockDevice,
    bytes: u64,
    label: Label,
    number: u64,
) -> Result<Physical, LayerError> {
    let own = number * SECTOR_SIZE;
    let mut found =
        Physical { id: label.id, reserved: Vec::new(), texts: Vec::new(), faults: Vec::new() };
    found.reserved.push(own..own + SECTOR_SIZE);
    for (start, length) in label.areas {
        let Some(end) = start.checked_add(length).filter(|end| *end <= bytes) else {
            found.faults.push(format!("metadata from byte {start} on ends behind the device"));
            continue;
        };
        found.reserved.push(start..end);
        match area(device, start, length)? {
            Ok(text) => found.texts.extend(text),
            Err(fault) => found.faults.push(format!("metadata from byte {start} on: {fault}")),
        }
    }
    Ok(found)
}

/// The text of an area, if it has one that counts; or its fault.
fn area(
    device: &dyn BlockDevice,
    start: u64,
    length: u64,
) -> Result<Result<Option<String>, String>, LayerError> {
    let fault = |what: &str| Ok(Err(what.to_owned()));
    if !start.is_multiple_of(SECTOR_SIZE) || length <= 2 * SECTOR_SIZE {
        return fault("an area that is shorter than a header, or begins within a sector");
    }
    let header = read_buffer(device, Sector(start / SECTOR_SIZE), SECTOR)?;
    if le32(&header, 0) != checksum(&header[4..]) {
        return fault("the checksum of its header is wrong");
    }
    if &header[4..20] != AREA || le32(&header, 20) != 1 {
        return fault("its header is that of another format");
    }
    if le64(&header, 24) != start || le64(&header, 32) != length {
        return fault("its header is that of another area");
    }
    let (at, size) = (le64(&header, 40), le64(&header, 48));
    if at == 0 || le32(&header, 60) & IGNORED != 0 {
        return Ok(Ok(None));
    }
    // The ring is what is behind the header.
    let ring = SECTOR_SIZE..length;
    if !ring.contains(&at) || size > ring.end - ring.start || size > MAX_TEXT {
        return fault("its text is outside of the area");
    }
    let front = size.min(length - at);
    let mut text = bytes_at(device, start + at, front)?;
    text.extend(bytes_at(device, start + SECTOR_SIZE, size - front)?);
    if checksum(&text) != le32(&header, 56) {
        return fault("the checksum of its text is wrong");
    }
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    Ok(Ok(Some(String::from_utf8_lossy(&text[..end]).into_owned())))
}

/// Bytes from any byte on, which are on the device.
fn bytes_at(device: &dyn BlockDevice, start: u64, length: u64) -> Result<Vec<u8>, LayerError> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let before = start % SECTOR_SIZE;
    let whole = (before + length).next_multiple_of(SECTOR_SIZE);
    let read = read_buffer(device, Sector(start / SECTOR_SIZE), whole as usize)?;
    Ok(read[before as usize..][..length as usize].to_vec())
}

/// The CRC32 of LVM, which is begun with a number of its own and not inverted.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!CHECKSUM);
    hasher.update(bytes);
    !hasher.finalize()
}
