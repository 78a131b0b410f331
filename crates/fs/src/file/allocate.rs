//! Space of a file, given and taken.

use super::File;
use std::ops::Range;
use undercroft_xfs::Error;
use undercroft_xfs::ops::Size;

/// What becomes of a range of a file, as `fallocate(2)` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Every block of it gets a place on the device. Ranges that were not stored read as zeros as
    /// before. The file grows to the end of the range unless `keep_size`.
    Reserve {
        /// Whether the size stays.
        keep_size: bool,
    },
    /// Its blocks are freed, and it reads as zeros. The size stays.
    PunchHole,
    /// It reads as zeros, and every block of it has a place on the device.
    Zero {
        /// Whether the size stays.
        keep_size: bool,
    },
    /// It is taken out of the file, and the data behind it moves to its place. Whole blocks.
    Collapse,
    /// A hole of that length is put in, and data there moves behind it. Whole blocks.
    Insert,
    /// Blocks of it that other files have, too, become this file's own copies.
    Unshare,
}

impl File {
    /// Changes the space of a range of bytes.
    ///
    /// # Errors
    /// The range is empty, or not of whole blocks where it must be, or lies where it must not; the
    /// file would be larger than the format allows; its flags forbid it; no space; a damaged
    /// structure; the device failed; the volume is read-only.
    pub fn allocate(&self, mode: Allocation, range: Range<u64>) -> Result<(), Error> {
        self.expect_changeable()?;
        let (open, now) = (self.open_file(), self.file_system().data_time());
        let size = |keep_size| if keep_size { Size::Keep } else { Size::Grow };
        match mode {
            Allocation::Reserve { keep_size } => open.preallocate(range, size(keep_size), now),
            Allocation::PunchHole => open.punch(range, now),
            Allocation::Zero { keep_size } => open.zero(range, size(keep_size), now),
            Allocation::Collapse => open.collapse(range, now),
            Allocation::Insert => open.insert(range, now),
            Allocation::Unshare => open.unshare(range, now),
        }
    }
}
