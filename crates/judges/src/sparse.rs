//! Where a file holds data and where it has holes.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The ranges of a file that hold data: start and end in bytes, ascending, apart from each other.
pub(crate) type Map = Vec<(u64, u64)>;

/// Where the file holds data, up to its `size`.
pub(crate) fn map(file: BorrowedFd<'_>, size: u64) -> Result<Map, Errno> {
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
pub(crate) fn dense(file: BorrowedFd<'_>, size: u64) -> Result<bool, Errno> {
    Ok(size == 0 || seek(file, SeekFrom::Hole(0))? >= size)
}

/// Grows each range to multiples of `unit`, clipped to `size`, and joins ranges that then touch.
pub(crate) fn round(map: &[(u64, u64)], unit: u64, size: u64) -> Map {
    let grown = map.iter().map(|&(start, end)| {
        (start - start % unit, end.checked_next_multiple_of(unit).unwrap_or(u64::MAX).min(size))
    });
    join(grown)
}

/// The ranges that are in either map.
pub(crate) fn union(left: &[(u64, u64)], right: &[(u64, u64)]) -> Map {
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
