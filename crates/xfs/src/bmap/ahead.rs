//! Space that is taken for more than the blocks being written: for the window of an extent size
//! hint, and ahead of a file that is appended to.
//!
//! docs/algorithms/file-mapping.md#extent-size-hints and
//! docs/algorithms/file-mapping.md#space-behind-the-end; what it leaves open is as a kernel does
//! it.

use crate::inode::ExtentList;
use crate::inode::MAX_EXTENT_LEN;
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::Range;

/// Least space that is taken ahead, and the size of a file from which it is.
const LEAST_AHEAD: u64 = 64 << 10;

/// Most space that is taken ahead, in blocks.
const MOST_AHEAD: u64 = 1 << 21;

/// The blocks to allocate for `wanted`, which are not mapped: whole multiples of `hint` blocks of
/// the file, as far as they are free of other extents. It is moved rather than cut.
#[must_use]
pub fn window(extents: &ExtentList, wanted: &Range<FileBlock>, hint: u32) -> Range<FileBlock> {
    let hint = u64::from(hint.max(1));
    let mut start = wanted.start.0 / hint * hint;
    let mut len = wanted.end.0.next_multiple_of(hint) - start;
    let longest = u64::from(MAX_EXTENT_LEN);
    if len > longest {
        len = (longest / hint * hint).max(hint.min(longest));
    }
    let before = extents.before(wanted.start).map_or(0, |before| before.end().0);
    start = start.max(before);
    if let Some(behind) = extents.at_or_after(wanted.start).map(|behind| behind.offset.0)
        && start + len > behind
    {
        start = behind.saturating_sub(len).max(before);
        len = len.min(behind - start);
    }
    FileBlock(start.min(wanted.start.0))..FileBlock((start + len).max(wanted.end.0))
}

/// How far to allocate for `hole`, which ends where a file ends that is appended to. The more of
/// the file lies in one piece in front of it, the farther; the less space is left, the nearer.
/// `size` is what the file had before, in bytes.
#[must_use]
pub fn ahead(
    volume: &Volume,
    extents: &ExtentList,
    hole: &Range<FileBlock>,
    size: u64,
) -> FileBlock {
    let (geometry, unit) = (volume.geometry(), u64::from(volume.geometry().stripe_unit));
    if size < LEAST_AHEAD || extents.at_or_after(hole.start).is_some() {
        return hole.end;
    }
    let least = (LEAST_AHEAD >> geometry.block_log).max(1);
    let is_striped = unit > 0 && size >= unit << geometry.block_log;
    let blocks = if unit > 0 && !is_striped {
        least
    } else {
        in_front(extents, hole.start).map_or(least, |piece| {
            let wish = 2 * piece;
            let wish = if wish > u64::from(MAX_EXTENT_LEN) { hole.start.0 } else { wish };
            moderate(volume, wish).max(least)
        })
    };
    let mut end = (hole.end.0 - 1) / least * least + blocks;
    if is_striped {
        end = end.next_multiple_of(unit);
    }
    FileBlock(end.clamp(hole.end.0, FileBlock::MAX.0.max(hole.end.0)))
}

/// Blocks in one piece on the device that end at `end`; `None` if nothing ends there.
fn in_front(extents: &ExtentList, end: FileBlock) -> Option<u64> {
    let mut first = extents.before(end).filter(|before| before.end() == end)?;
    let mut piece = u64::from(first.len);
    while piece <= u64::from(MAX_EXTENT_LEN / 2)
        && let Some(before) = extents.before(first.offset)
        && before.end() == first.offset
        && before.start.0 + u64::from(before.len) == first.start.0
    {
        piece += u64::from(before.len);
        first = before;
    }
    Some(piece)
}

/// A power of two, at most `wish` blocks, that the free space allows.
fn moderate(volume: &Volume, wish: u64) -> u64 {
    let (free, all) = (volume.available_blocks(), volume.superblock().blocks);
    // 2 below five percent, 6 below one.
    let shift = match (1..=5).filter(|percent| free < all / 100 * percent).count() {
        0 => 0,
        thresholds => 1 + thresholds,
    };
    let mut blocks = wish.min(MOST_AHEAD) >> shift;
    if blocks > 0 {
        blocks = 1 << blocks.ilog2();
    }
    blocks = blocks.min(MAX_EXTENT_LEN.into());
    while blocks > 0 && blocks >= free {
        blocks >>= 4;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Extent;
    use crate::units::FsBlock;

    fn list(extents: &[(u64, u32)]) -> ExtentList {
        let extent = |(offset, len): &(u64, u32)| Extent {
            offset: FileBlock(*offset),
            start: FsBlock(1000 + offset),
            len: *len,
            unwritten: false,
        };
        ExtentList::from_sorted(extents.iter().map(extent).collect())
    }

    fn window_of(extents: &[(u64, u32)], wanted: Range<u64>) -> (u64, u64) {
        let wanted = FileBlock(wanted.start)..FileBlock(wanted.end);
        let found = window(&list(extents), &wanted, 16);
        (found.start.0, found.end.0)
    }

    /// Each of them was seen of a kernel.
    #[test]
    fn windows_are_those_of_a_kernel() {
        assert_eq!(window_of(&[], 0..1), (0, 16));
        assert_eq!(window_of(&[], 20..40), (16, 48));
        assert_eq!(window_of(&[(0, 16)], 16..18), (16, 32));
        // Moved behind the extent before it, with its length.
        assert_eq!(window_of(&[(0, 1)], 7..8), (1, 17));
        // Moved in front of the extent behind it.
        assert_eq!(window_of(&[(21, 4)], 18..19), (5, 21));
        assert_eq!(window_of(&[(0, 10), (30, 18)], 20..21), (14, 30));
        // Between two it is cut.
        assert_eq!(window_of(&[(0, 10), (14, 34)], 11..12), (10, 14));
    }

    #[test]
    fn windows_cover_the_wanted_blocks() {
        let most = u64::from(MAX_EXTENT_LEN);
        assert_eq!(window_of(&[], 5..5 + 2 * most), (0, 5 + 2 * most));
        assert_eq!(window_of(&[], 17..16 + most), (16, 16 + most));
    }

    #[test]
    fn a_piece_ends_where_the_device_jumps() {
        let mut extents = list(&[(0, 10), (10, 5), (15, 1)]).as_slice().to_vec();
        extents[1].unwritten = true;
        let joined = ExtentList::from_sorted(extents.clone());
        assert_eq!(in_front(&joined, FileBlock(16)), Some(16));
        assert_eq!(in_front(&joined, FileBlock(17)), None);
        extents[0].start.0 -= 1;
        assert_eq!(in_front(&ExtentList::from_sorted(extents), FileBlock(16)), Some(6));
    }
}
