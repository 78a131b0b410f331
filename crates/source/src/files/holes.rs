//! Where a sparse file has data.

use crate::DataRange;
use crate::entry::{MAX_DATA_RANGES, MAX_FILE_SIZE};
use rustix::fd::AsFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, Result, pread, retry_on_intr};

/// Bytes at the end of the largest files in which the kernel overlooks data that is in its page cache
/// alone, or on its way to the disk: those of the last folio, whose end no offset can express. So
/// XFS and tmpfs of Linux 6.18.
const OVERLOOKED: u64 = 2 << 20;

/// A part of those is data if it is not all zeros.
const UNIT: usize = 4096;

/// The data ranges of a file of `size` bytes, or `None` when there are too many of them. A file system
/// that cannot tell has one range.
pub fn data_ranges(fd: impl AsFd, size: u64) -> Result<Option<Vec<DataRange>>> {
    let mut ranges: Vec<DataRange> = Vec::new();
    let mut position = 0;
    while position < size {
        let start = match seek(&fd, SeekFrom::Data(position)) {
            Ok(start) => start.min(size),
            // A hole up to the end of the file. If that has moved below `size`, reading will say so.
            Err(Errno::NXIO) => {
                let end = seek(&fd, SeekFrom::End(0))?;
                if !add(&mut ranges, end.max(position), size) {
                    return Ok(None);
                }
                break;
            }
            Err(Errno::INVAL) => return Ok(Some(vec![DataRange { offset: 0, length: size }])),
            Err(error) => return Err(error),
        };
        let end = match seek(&fd, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size),
            // The end of the file moved below `start`; reading will say so.
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error),
        };
        if !add(&mut ranges, start, end) {
            return Ok(None);
        }
        position = end;
    }
    if size > MAX_FILE_SIZE - OVERLOOKED && !add_overlooked(fd, size, &mut ranges)? {
        return Ok(None);
    }
    Ok(Some(ranges))
}

/// Adds a range behind the others; `false` if there are too many.
fn add(ranges: &mut Vec<DataRange>, start: u64, end: u64) -> bool {
    let full = ranges.len() == MAX_DATA_RANGES;
    match ranges.last_mut() {
        _ if end <= start => {}
        Some(last) if last.end() == start => last.length += end - start,
        _ if full => return false,
        _ => ranges.push(DataRange { offset: start, length: end - start }),
    }
    true
}

/// Reads the end of one of the largest files, and adds data that was overlooked there.
fn add_overlooked(fd: impl AsFd, size: u64, ranges: &mut Vec<DataRange>) -> Result<bool> {
    let known = ranges.last().map_or(0, DataRange::end);
    let from = known.max((size - OVERLOOKED).next_multiple_of(UNIT as u64));
    // At most those that are overlooked.
    let mut bytes = vec![0; (size - from) as usize];
    let mut done = 0;
    while done < bytes.len() {
        match retry_on_intr(|| pread(&fd, &mut bytes[done..], from + done as u64))? {
            // It has become shorter; reading will say so.
            0 => break,
            count => done += count,
        }
    }
    let parts = (from..).step_by(UNIT).zip(bytes.chunks(UNIT));
    Ok(parts
        .filter(|(_, part)| part.iter().any(|byte| *byte != 0))
        .all(|(start, part)| add(ranges, start, start + part.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::io::pwrite;

    /// The ranges of a file in the page cache with a byte at each of these places.
    fn found(size: u64, places: &[u64]) -> Vec<DataRange> {
        let file = memfd_create("sparse", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, size).unwrap();
        for place in places {
            assert_eq!(pwrite(&file, b"x", *place), Ok(1));
        }
        data_ranges(&file, size).unwrap().unwrap()
    }

    #[test]
    fn data_in_the_last_page_that_there_can_be_is_not_overlooked() {
        let page = |start: u64| DataRange { offset: start, length: 4096 };
        let last = MAX_FILE_SIZE / 4096 * 4096;
        let end = DataRange { offset: last, length: 4095 };
        for place in [last, MAX_FILE_SIZE - 1] {
            assert_eq!(found(MAX_FILE_SIZE, &[place]), [end]);
        }
        assert_eq!(found(MAX_FILE_SIZE, &[1 << 62, MAX_FILE_SIZE - 1]), [page(1 << 62), end]);
        let two = DataRange { offset: last - 4096, length: 4096 + 4095 };
        assert_eq!(found(MAX_FILE_SIZE, &[last - 1, last]), [two]);
        assert_eq!(found(MAX_FILE_SIZE, &[]), []);
        assert_eq!(found(last, &[last - 1]), [page(last - 4096)]);
        assert_eq!(found(1 << 40, &[5]), [page(0)]);
    }

    #[test]
    fn what_was_cut_off_is_no_hole() {
        let file = memfd_create("cut", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 65_536).unwrap();
        let cut = DataRange { offset: 65_536, length: 4096 };
        assert_eq!(data_ranges(&file, 65_536 + 4096), Ok(Some(vec![cut])));
        assert_eq!(data_ranges(&file, 65_536), Ok(Some(Vec::new())));
    }
}
