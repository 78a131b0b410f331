//! The way of the bytes of a write that are in no memory of this process.

use std::fs::File;
use std::io;

/// Moves bytes to a file from an offset on, as many as it is told at most, and returns their number.
pub type Splice<'s> = dyn FnMut(&File, u64, usize) -> io::Result<usize> + 's;
