//! Undo files: what sectors held before a repair changed them.
//!
//! A file is complete and durable before the first sector changes, and says whether the repair was finished.
//! All numbers are little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 0 to 15 | "UNDERCROFT UNDO\n" |
//! | 16 to 19 | 1, the version |
//! | 20 to 23 | 0 while the repair is under way, 1 when it is done |
//! | 24 to 31 | length of the device in sectors of 512 bytes |
//! | 32 to 39 | number of ranges |
//! | 40 to 43 | CRC32C of all that follows |
//! | from 48 | each range: first sector (8 bytes), sectors (8 bytes), contents |

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use undercroft_block::{BlockDevice, Sector, flush, read_exact_at, write_all_at};

use crate::error::RepairError;

const MAGIC: &[u8; 16] = b"UNDERCROFT UNDO\n";
const VERSION: u32 = 1;
const HEADER: usize = 48;
const STATE: u64 = 20;

/// Sectors of the longest range: 1 MiB.
const LONGEST: u64 = 2048;

/// What an undo file says of the repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoState {
    /// It began, and did not say that it ended.
    UnderWay,
    /// It was finished.
    Done,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> RepairError {
    move |source| RepairError::File { path: path.to_owned(), source }
}

fn wrong(path: &Path, what: impl Into<String>) -> RepairError {
    RepairError::Undo { path: path.to_owned(), what: what.into() }
}

/// Keeps what sectors of a device hold in a new file, durably.
pub(crate) fn keep(
    device: &Arc<dyn BlockDevice>,
    ranges: &[Range<u64>],
    path: &Path,
) -> Result<(), RepairError> {
    let failed = failed(path);
    let file = File::options().write(true).create_new(true).open(path).map_err(&failed)?;
    let pieces: Vec<Range<u64>> = ranges
        .iter()
        .flat_map(|range| {
            let end = range.end;
            range.clone().step_by(LONGEST as usize).map(move |at| at..end.min(at + LONGEST))
        })
        .collect();
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(MAGIC);
    header[16..20].copy_from_slice(&VERSION.to_le_bytes());
    header[24..32].copy_from_slice(&device.capacity().0.to_le_bytes());
    header[32..40].copy_from_slice(&(pieces.len() as u64).to_le_bytes());
    let mut out = io::BufWriter::new(&file);
    out.write_all(&header).map_err(&failed)?;
    let mut crc = 0;
    for piece in pieces {
        let count = piece.end - piece.start;
        let mut bytes = vec![0; 16 + count as usize * 512];
        bytes[..8].copy_from_slice(&piece.start.to_le_bytes());
        bytes[8..16].copy_from_slice(&count.to_le_bytes());
        read_exact_at(device.as_ref(), Sector(piece.start), &mut bytes[16..])?;
        crc = crc32c::crc32c_append(crc, &bytes);
        out.write_all(&bytes).map_err(&failed)?;
    }
    out.flush().map_err(&failed)?;
    drop(out);
    file.write_all_at(&crc.to_le_bytes(), 40).map_err(&failed)?;
    file.sync_all().map_err(&failed)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(directory.unwrap_or(Path::new("."))).map_err(&failed)?;
    directory.sync_all().map_err(&failed)
}

/// Says that the repair is done.
pub(crate) fn finish(path: &Path) -> Result<(), RepairError> {
    let failed = failed(path);
    let file = File::options().write(true).open(path).map_err(&failed)?;
    file.write_all_at(&1_u32.to_le_bytes(), STATE).map_err(&failed)?;
    file.sync_all().map_err(&failed)
}

/// An undo file that is whole.
#[derive(Debug)]
pub struct UndoFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl UndoFile {
    /// Reads and checks an undo file.
    ///
    /// # Errors
    /// It is none, it is not whole, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, RepairError> {
        let failed = failed(path);
        let mut bytes = Vec::new();
        File::open(path).map_err(&failed)?.read_to_end(&mut bytes).map_err(&failed)?;
        if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
            return Err(wrong(path, "is no undo file of a repair"));
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|index| bytes[at + index]));
        if word(16) != VERSION {
            return Err(wrong(path, format!("is an undo file of version {}", word(16))));
        }
        if word(40) != crc32c::crc32c(&bytes[HEADER..]) {
            return Err(wrong(
                path,
                "is damaged, or was not written to its end; it changes nothing",
            ));
        }
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// How far the repair was.
    #[must_use]
    pub fn state(&self) -> UndoState {
        if self.bytes[STATE as usize] == 0 { UndoState::UnderWay } else { UndoState::Done }
    }

    /// Writes everything back that the repair changed; returns the bytes.
    ///
    /// # Errors
    /// The device has another length; it failed.
    pub fn take_back(&self, device: &Arc<dyn BlockDevice>) -> Result<u64, RepairError> {
        let long =
            |at: usize| u64::from_le_bytes(std::array::from_fn(|index| self.bytes[at + index]));
        let (capacity, found) = (long(24), device.capacity().0);
        if capacity != found {
            let what = format!("is of a device of {} bytes, not {}", capacity * 512, found * 512);
            return Err(wrong(&self.path, what));
        }
        let (mut at, mut done) = (HEADER, 0);
        while at + 16 <= self.bytes.len() {
            let (sector, count) = (long(at), long(at + 8));
            let end = usize::try_from(count).ok().and_then(|count| count.checked_mul(512));
            let end = end.and_then(|len| len.checked_add(at + 16));
            let Some(contents) = end.and_then(|end| self.bytes.get(at + 16..end)) else {
                return Err(wrong(&self.path, "has a range that ends behind it"));
            };
            write_all_at(device.as_ref(), Sector(sector), contents)?;
            done += contents.len() as u64;
            at += 16 + contents.len();
        }
        flush(device.as_ref())?;
        Ok(done)
    }
}
