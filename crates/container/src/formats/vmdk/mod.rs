//! VMDK, of VMware: one file, or a text that names several.
//!
//! Fields: VMware's Virtual Disk Format 5.0. A disk is a list of extents (`descriptor`), each of them the bytes
//! of a file, or a file with grains and tables of them (`sparse`). Numbers are little-endian and count sectors.

mod descriptor;
mod sparse;

use crate::disk::{Disk, Flat, Stored};
use crate::neighbours::Neighbours;
use crate::obstacle::{Obstacle, damaged, not_supported};
use descriptor::{Descriptor, Extent, Kind};
use sparse::Sparse;
use std::io;
use std::path::Path;

const SECTOR: u64 = 512;
const TEXT: &[u8] = b"# Disk DescriptorFile";
/// Longest text.
const MAX_TEXT: u64 = 4 << 20;

/// Whether a file begins as such an image.
pub(super) fn is_one(start: &[u8]) -> bool {
    start.starts_with(sparse::MAGIC) || start.starts_with(b"COWD") || start.starts_with(TEXT)
}

pub(super) fn open(
    stored: Stored,
    path: &Path,
    neighbours: &Neighbours,
) -> Result<Box<dyn Disk>, Obstacle> {
    let start: [u8; 4] = stored.array(0)?;
    if start == *sparse::MAGIC {
        let sparse = Sparse::open(stored)?;
        let Some(text) = sparse.text()? else {
            return damaged(
                "it is one of several files of a disk; the file that names them is the disk",
            );
        };
        // A parent is all that the text has to say of a file that is alone.
        Descriptor::parse(&text)?;
        return Ok(Box::new(sparse));
    }
    if start == *b"COWD" {
        return not_supported("extents of an old ESX server");
    }
    let length = stored.length();
    if length > MAX_TEXT {
        return damaged(format!("its text has {length} bytes"));
    }
    let mut text = vec![0; length as usize];
    stored.fill(0, &mut text)?;
    let mut parts = Vec::new();
    let mut bytes: u64 = 0;
    for extent in Descriptor::parse(&text)?.extents {
        let length = extent.sectors.checked_mul(SECTOR);
        let end = length.and_then(|length| bytes.checked_add(length));
        let Some(end) = end else { return damaged("its extents are too long") };
        parts.push(Part { end, disk: open_extent(&extent, end - bytes, path, neighbours)? });
        bytes = end;
    }
    if parts.is_empty() {
        return damaged("its text names no extents");
    }
    Ok(Box::new(Parts { parts }))
}

/// The disk of an extent; `None` for zeroes.
fn open_extent(
    extent: &Extent,
    bytes: u64,
    path: &Path,
    neighbours: &Neighbours,
) -> Result<Option<Box<dyn Disk>>, Obstacle> {
    if extent.kind == Kind::Zero {
        return Ok(None);
    }
    let opened = neighbours.open(path, &extent.file, "its data");
    let (_, file) = opened.map_err(Obstacle::Other)?;
    let stored = Stored::new(file)?;
    let name = extent.file.escape_debug();
    let disk: Box<dyn Disk> = if extent.kind == Kind::Flat {
        let start = extent.first.saturating_mul(SECTOR);
        if start.checked_add(bytes).is_none_or(|end| end > stored.length()) {
            return damaged(format!("{bytes} bytes are not in \"{name}\"; is it cut?"));
        }
        Box::new(Flat { stored, start, bytes })
    } else {
        let sparse = Sparse::open(stored)?;
        if sparse.bytes() < bytes {
            return damaged(format!("\"{name}\" has fewer bytes than {bytes}"));
        }
        Box::new(sparse)
    };
    Ok(Some(disk))
}

/// A disk of extents one behind the other.
struct Parts {
    parts: Vec<Part>,
}

struct Part {
    /// Its end in the disk.
    end: u64,
    disk: Option<Box<dyn Disk>>,
}

impl Disk for Parts {
    fn bytes(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    fn read(&self, mut at: u64, mut memory: &mut [u8]) -> io::Result<()> {
        let first = self.parts.partition_point(|part| part.end <= at);
        let mut start = first.checked_sub(1).map_or(0, |before| self.parts[before].end);
        for part in &self.parts[first..] {
            if memory.is_empty() {
                break;
            }
            let length = (part.end - at).min(memory.len() as u64);
            let (piece, rest) = memory.split_at_mut(length as usize);
            match &part.disk {
                Some(disk) => disk.read(at - start, piece)?,
                None => piece.fill(0),
            }
            at += length;
            start = part.end;
            memory = rest;
        }
        Ok(())
    }
}
