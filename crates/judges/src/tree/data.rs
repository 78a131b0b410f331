//! Contents and allocation of two regular files.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};

/// Bytes read at once from each file.
const CHUNK: usize = 256 * 1024;

/// The ranges of a file that hold data: start and end in bytes, ascending, apart from each other.
pub(super) type Map = Vec<(u64, u64)>;

/// Reads two files side by side, with buffers that are kept from file to file.
pub(super) struct Reader {
    left: Vec<u8>,
    right: Vec<u8>,
    /// Bytes of contents compared so far.
    pub(super) bytes: u64,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { left: vec![0; CHUNK], right: vec![0; CHUNK], bytes: 0 }
    }

    /// The first offset at which the files differ within `ranges`, or `None`.
    pub(super) fn difference(
        &mut self,
        left: BorrowedFd<'_>,
        right: BorrowedFd<'_>,
        ranges: &[(u64, u64)],
    ) -> Result<Option<u64>, Errno> {
        for &(start, end) in ranges {
            let mut offset = start;
            while offset < end {
                let wanted = usize::try_from(end - offset).unwrap_or(CHUNK).min(CHUNK);
                let got = read_full(left, &mut self.left[..wanted], offset)?;
                let other = read_full(right, &mut self.right[..wanted], offset)?;
                if self.left[..got] != self.right[..other] {
                    let same = self.left[..got.min(other)]
                        .iter()
                        .zip(&self.right[..got.min(other)])
                        .take_while(|(left, right)| left == right)
                        .count();
                    return Ok(Some(offset + same as u64));
                }
                self.bytes += got as u64;
                // Both end before the size they state: the caller has compared the sizes, and a
                // range past the end holds nothing.
                if got < wanted {
                    break;
                }
                offset += got as u64;
            }
        }
        Ok(None)
    }
}

/// Reads until `buffer` is full or the file ends.
fn read_full(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match pread(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Where the file holds data, up to its `size`.
pub(super) fn map(file: BorrowedFd<'_>, size: u64) -> Result<Map, Errno> {
    let mut map = Map::new();
    let mut offset = 0;
    while offset < size {
        let start = match seek(file, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => break,
            other => other?,
        };
        let end = seek(file, SeekFrom::Hole(start))?.min(size);
        map.push((start, end));
        offset = end;
    }
    Ok(map)
}

/// Whether the file has no hole up to its `size`, at the cost of one system call.
pub(super) fn dense(file: BorrowedFd<'_>, size: u64) -> Result<bool, Errno> {
    Ok(size == 0 || seek(file, SeekFrom::Hole(0))? >= size)
}

/// Grows each range to multiples of `unit`, clipped to `size`, and joins those that then touch.
pub(super) fn round(map: &[(u64, u64)], unit: u64, size: u64) -> Map {
    let grown = map.iter().map(|&(start, end)| {
        (start - start % unit, end.checked_next_multiple_of(unit).unwrap_or(u64::MAX).min(size))
    });
    join(grown)
}

/// The ranges that are in either map.
pub(super) fn union(left: &[(u64, u64)], right: &[(u64, u64)]) -> Map {
    let mut all: Map = left.iter().chain(right).copied().collect();
    all.sort_unstable();
    join(all.into_iter())
}

/// Joins ranges, sorted by start, that touch or overlap.
fn join(ranges: impl Iterator<Item = (u64, u64)>) -> Map {
    let mut joined = Map::new();
    for (start, end) in ranges {
        match joined.last_mut() {
            Some((_, last)) if *last >= start => *last = end.max(*last),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_and_join() {
        assert_eq!(round(&[(0, 10), (4090, 4100), (9000, 9001)], 4096, 9001), [(0, 9001)]);
        assert_eq!(round(&[(0, 10), (8192, 8200)], 4096, 10000), [(0, 4096), (8192, 10000)]);
        assert_eq!(union(&[(0, 5), (10, 20)], &[(5, 7), (15, 30)]), [(0, 7), (10, 30)]);
        assert_eq!(union(&[], &[]), []);
    }
}
