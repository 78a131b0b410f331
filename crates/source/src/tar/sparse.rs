//! The map of a sparse file: where the data that is stored one piece after the other belongs.

use super::error::Problem;
use crate::DataRange;
use crate::entry::{MAX_DATA_RANGES, MAX_FILE_SIZE};

/// Longest number in a map that is text (version 1.0): 20 digits, then the line end.
const MAX_LINE: usize = 21;

/// Checks a map against the size of the file and the number of bytes stored, and gives it the form
/// of entries: no empty ranges, none that touch.
pub(super) fn check(
    map: Vec<DataRange>,
    real_size: u64,
    stored: u64,
) -> Result<Vec<DataRange>, Problem> {
    if real_size > MAX_FILE_SIZE {
        return Err(Problem::FileSize(real_size));
    }
    let mut ranges: Vec<DataRange> = Vec::with_capacity(map.len());
    let (mut end, mut total) = (0, 0);
    for (at, range) in map.into_iter().enumerate() {
        let wrong = |reason| Problem::SparseMap { at, reason };
        if range.offset < end {
            return Err(wrong("it overlaps the range before it"));
        }
        end = range
            .offset
            .checked_add(range.length)
            .filter(|&end| end <= real_size)
            .ok_or_else(|| wrong("it reaches beyond the end of the file"))?;
        // At most `real_size`, since ranges do not overlap.
        total += range.length;
        if range.length == 0 {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.end() == range.offset => last.length += range.length,
            _ => ranges.push(range),
        }
    }
    if total != stored {
        let reason = "the ranges are not as long as the data that is stored";
        return Err(Problem::SparseMap { at: ranges.len(), reason });
    }
    Ok(ranges)
}

/// Reads a version 1.0 map: decimal lines, first the number of ranges, then offset and length of each.
/// Fed with the blocks that hold it.
#[derive(Debug, Default)]
pub(super) struct MapText {
    line: Vec<u8>,
    count: Option<u64>,
    offset: Option<u64>,
    ranges: Vec<DataRange>,
}

impl MapText {
    /// Takes the next block. Returns whether the map is complete; what follows it in its last block is
    /// padding.
    pub(super) fn feed(&mut self, block: &[u8]) -> Result<bool, Problem> {
        for &byte in block {
            if self.is_complete() {
                break;
            }
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() >= MAX_LINE {
                    return Err(self.wrong());
                }
                continue;
            }
            let text = std::str::from_utf8(&self.line).map_err(|_| self.wrong())?;
            let number: u64 = text.parse().map_err(|_| self.wrong())?;
            self.line.clear();
            self.push(number)?;
        }
        Ok(self.is_complete())
    }

    fn push(&mut self, number: u64) -> Result<(), Problem> {
        match (self.count, self.offset.take()) {
            (None, _) if number > MAX_DATA_RANGES as u64 => return Err(Problem::SparseRanges),
            (None, _) => self.count = Some(number),
            (Some(_), None) => self.offset = Some(number),
            (Some(_), Some(offset)) => self.ranges.push(DataRange { offset, length: number }),
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.count == Some(self.ranges.len() as u64)
    }

    fn wrong(&self) -> Problem {
        Problem::SparseMap { at: self.ranges.len(), reason: "a line of the map is no number" }
    }

    pub(super) fn into_ranges(self) -> Vec<DataRange> {
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(offset: u64, length: u64) -> DataRange {
        DataRange { offset, length }
    }

    #[test]
    fn empty_ranges_go_and_touching_ones_join() {
        let map =
            vec![range(0, 512), range(512, 100), range(1000, 0), range(1000, 24), range(2048, 0)];
        assert_eq!(check(map, 2048, 636).unwrap(), [range(0, 612), range(1000, 24)]);
        assert_eq!(check(vec![], 1 << 40, 0).unwrap(), []);
    }

    #[test]
    fn wrong_maps_are_refused() {
        for (map, size, stored, reason) in [
            (vec![range(10, 10), range(5, 1)], 100, 11, "overlaps"),
            (vec![range(90, 11)], 100, 11, "beyond"),
            (vec![range(u64::MAX, 2)], 100, 2, "beyond"),
            (vec![range(0, 10)], 100, 11, "stored"),
            (vec![], u64::MAX, 0, "more than a file"),
        ] {
            let problem = check(map, size, stored).unwrap_err().to_string();
            assert!(problem.contains(reason), "{problem}");
        }
    }

    #[test]
    fn a_map_in_text_may_span_blocks() {
        let mut map = MapText::default();
        assert!(!map.feed(b"2\n0\n51").unwrap());
        assert!(map.feed(b"2\n4096\n7\n\0\0\0").unwrap());
        assert_eq!(map.into_ranges(), [range(0, 512), range(4096, 7)]);
        for text in [&b"x\n"[..], b"\n", b"-1\n", b"111111111111111111111111"] {
            assert!(matches!(MapText::default().feed(text), Err(Problem::SparseMap { .. })));
        }
        let problem = MapText::default().feed(b"99999999\n").unwrap_err();
        assert!(matches!(problem, Problem::SparseRanges));
    }
}
