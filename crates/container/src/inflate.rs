//! Blocks that were deflated each for itself.

use crate::disk::invalid;
use flate2::{Decompress, FlushDecompress, Status};
use std::io;

/// What is around the deflated bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    Zlib,
    None,
}

/// Decompresses a block that has so many bytes. One that ends before has zeroes behind its end.
pub(crate) fn inflate(packed: &[u8], bytes: usize, wrapping: Wrapping) -> io::Result<Vec<u8>> {
    let mut block = vec![0; bytes];
    let mut decoder = Decompress::new(wrapping == Wrapping::Zlib);
    let status = decoder
        .decompress(packed, &mut block, FlushDecompress::Finish)
        .map_err(|error| invalid(format!("its deflated data is damaged ({error})")))?;
    if status != Status::StreamEnd && decoder.total_out() < bytes as u64 {
        return Err(invalid("its deflated data is cut"));
    }
    Ok(block)
}
