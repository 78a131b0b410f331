//! Holes of a file, for clients that copy it.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use undercroft_block::SECTOR_SIZE;
use undercroft_nbd::protocol::{AllocationFlags, BASE_ALLOCATION, StatusExtent};
use undercroft_nbd::server::Extents;

/// The holes of a file, as its file system tells of them.
pub(super) struct FileAllocation {
    file: File,
    /// Where in the file the export begins.
    start: u64,
}

impl FileAllocation {
    pub(super) fn open(path: &Path, start: u64) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, start })
    }

    /// Where the file ends now, in sectors of the export. What is behind it was cut off: no hole, as
    /// reading says.
    fn end(&self) -> u64 {
        let bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
        bytes.next_multiple_of(SECTOR_SIZE).saturating_sub(self.start)
    }

    /// The next place of data or of a hole, from `offset` of the export on; none if there is none
    /// before the end of the file.
    fn next(&self, offset: u64, data: bool) -> Result<Option<u64>, Errno> {
        let at = self.start + offset;
        let found = seek(&self.file, if data { SeekFrom::Data(at) } else { SeekFrom::Hole(at) });
        match found {
            Ok(found) => Ok(Some(found.saturating_sub(self.start))),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Extents for FileAllocation {
    fn name(&self) -> &str {
        BASE_ALLOCATION
    }

    fn at(&self, offset: u64, end: u64) -> StatusExtent {
        let hole = (AllocationFlags::HOLE | AllocationFlags::ZERO).bits();
        let rest = end - offset;
        // Where the file system does not tell, all may be data.
        let data = self.next(offset, true).unwrap_or(Some(offset));
        let data = data.unwrap_or_else(|| self.end()).clamp(offset, end);
        // A sector that is data in part is data.
        let empty = if data == end { rest } else { (data - offset) / SECTOR_SIZE * SECTOR_SIZE };
        if empty > 0 {
            return StatusExtent { length: empty, flags: hole };
        }
        let until = self.next(data, false).ok().flatten().unwrap_or(end).clamp(data, end);
        let length =
            (until - offset).next_multiple_of(SECTOR_SIZE).clamp(SECTOR_SIZE.min(rest), rest);
        StatusExtent { length, flags: 0 }
    }
}
