//! Bytes of files on their way to a disk that reads as zeros there.

use super::DiskError;
use super::identity::Identity;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use undercroft_block::{BlockDevice, Buffer, SECTOR_SIZE, Sector, is_zero, write_all_at};

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;

/// Bytes that are left out where all of them are zeros.
const GRAIN: usize = 64 << 10;

/// Fills partitions: knows what they hold, and tells how far it is.
pub(super) struct Copier<'a> {
    /// What went into partitions so far.
    pub(super) identity: Identity,
    bytes: u64,
    /// Told the bytes copied so far.
    report: &'a mut dyn FnMut(u64),
}

impl<'a> Copier<'a> {
    pub(super) fn new(identity: Identity, report: &'a mut dyn FnMut(u64)) -> Self {
        Self { identity, bytes: 0, report }
    }

    /// Copies `length` bytes of a file to byte `at` of `device`, a multiple of the sector size.
    /// Zeros are not written. The identity takes the content, whatever its holes.
    pub(super) fn copy(
        &mut self,
        (file, path): (&File, &Path),
        length: u64,
        device: &dyn BlockDevice,
        at: u64,
    ) -> Result<(), DiskError> {
        // Aligned, since the kernel copies quickly to such memory.
        let mut buffer = Buffer::zeroed(PIECE as usize);
        let mut done = 0;
        self.identity.number(length);
        while let Some(start) = next_data(file, path, done, length)? {
            // Pieces lie at multiples of their length, wherever holes end.
            done = start / PIECE * PIECE;
            let wanted = (length - done).min(PIECE) as usize;
            read_full(file, path, &mut buffer[..wanted], done, length)?;
            // A sector that the file fills in part ends with zeros.
            let padded = wanted.next_multiple_of(SECTOR_SIZE as usize);
            buffer[wanted..padded].fill(0);
            for (index, grain) in buffer[..padded].chunks(GRAIN).enumerate() {
                if !is_zero(grain) {
                    let place = done + (index * GRAIN) as u64;
                    self.identity.number(place);
                    self.identity.add(grain);
                    write_all_at(device, Sector((at + place) / SECTOR_SIZE), grain)?;
                }
            }
            done += wanted as u64;
            self.bytes += wanted as u64;
            (self.report)(self.bytes);
        }
        Ok(())
    }
}

/// Where data is from `at` on, if there is any ahead of `length`.
fn next_data(file: &File, path: &Path, at: u64, length: u64) -> Result<Option<u64>, DiskError> {
    if at >= length {
        return Ok(None);
    }
    match seek(file, SeekFrom::Data(at)) {
        Ok(start) => Ok((start < length).then_some(start)),
        // Nothing but a hole follows, or the file has become shorter.
        Err(Errno::NXIO) => match file.metadata() {
            Ok(metadata) if metadata.len() < length => {
                let path = path.to_owned();
                Err(DiskError::Changed { path, expected: length, found: metadata.len() })
            }
            _ => Ok(None),
        },
        // Block devices and some file systems know no holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(error) => Err(DiskError::Source {
            action: "find the holes of",
            path: path.to_owned(),
            source: error.into(),
        }),
    }
}

/// Fills `bytes` from `at` on of a file that had `length` bytes.
fn read_full(
    file: &File,
    path: &Path,
    bytes: &mut [u8],
    at: u64,
    length: u64,
) -> Result<(), DiskError> {
    let mut done = 0;
    while done < bytes.len() {
        let place = at + done as u64;
        match file.read_at(&mut bytes[done..], place) {
            Ok(0) => {
                let path = path.to_owned();
                return Err(DiskError::Changed { path, expected: length, found: place });
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(source) => {
                return Err(DiskError::Source { action: "read", path: path.to_owned(), source });
            }
        }
    }
    Ok(())
}
