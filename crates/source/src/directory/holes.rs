//! Where a sparse file has data.

use crate::DataRange;
use crate::entry::MAX_DATA_RANGES;
use rustix::fd::AsFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, Result};

/// The data ranges of a file of `size` bytes, or `None` when there are too many of them. A file system
/// that cannot tell has one range.
pub(crate) fn data_ranges(fd: impl AsFd, size: u64) -> Result<Option<Vec<DataRange>>> {
    let mut ranges: Vec<DataRange> = Vec::new();
    let mut position = 0;
    while position < size {
        let start = match seek(&fd, SeekFrom::Data(position)) {
            Ok(start) => start.min(size),
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => return Ok(Some(vec![DataRange { offset: 0, length: size }])),
            Err(error) => return Err(error),
        };
        let end = match seek(&fd, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size),
            // The end of the file moved below `start`; reading will say so.
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error),
        };
        if end > start {
            let full = ranges.len() == MAX_DATA_RANGES;
            match ranges.last_mut() {
                Some(last) if last.end() == start => last.length += end - start,
                _ if full => return Ok(None),
                _ => ranges.push(DataRange { offset: start, length: end - start }),
            }
        }
        position = end;
    }
    Ok(Some(ranges))
}
