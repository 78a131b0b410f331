//! The way of the bytes of a write that are in no memory of this process.

use std::fs::File;
use std::io;

use crate::memory::MappedFile;

/// Moves bytes to a file from an offset on, as many as it is told at most, and returns their number.
pub type Splice<'s> = dyn FnMut(SpliceTarget<'_>, u64, usize) -> io::Result<usize> + 's;

/// The place of the bytes of a device, at their offset there.
#[derive(Clone, Copy, Debug)]
pub struct SpliceTarget<'d> {
    /// The file that has them.
    pub file: &'d File,
    /// Its pages, if they can be [mapped](MappedFile::prepare).
    pub pages: Option<&'d MappedFile>,
}
