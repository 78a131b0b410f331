//! Free-index blocks of node form (docs/format/directories.md#free-index).
//!
//! Block k of the space holds the longest free lengths of data blocks k * capacity and following.

use super::layout::DirLayout;
use super::leaf::NO_BLOCK;
use crate::bytes::{EditBytes, be16, be32};

const fn header_offset(layout: DirLayout) -> usize {
    // The common header of the space, or its magic alone.
    layout.best_offset()
}

const fn bests_offset(layout: DirLayout) -> usize {
    header_offset(layout) + if layout.crc { 16 } else { 12 }
}

/// Data blocks that one index block describes.
#[must_use]
pub const fn capacity(layout: DirLayout) -> usize {
    (layout.block_size() - bests_offset(layout)) / 2
}

/// First data block described.
#[must_use]
pub fn first(bytes: &[u8], layout: DirLayout) -> u32 {
    be32(bytes, header_offset(layout))
}

/// Length of the array in use.
#[must_use]
#[inline]
pub fn valid(bytes: &[u8], layout: DirLayout) -> usize {
    be32(bytes, header_offset(layout) + 4) as usize
}

/// How many of them exist.
#[must_use]
pub fn used(bytes: &[u8], layout: DirLayout) -> usize {
    be32(bytes, header_offset(layout) + 8) as usize
}

/// Longest free length in slot `index`, [`NO_BLOCK`] beyond the array.
#[must_use]
#[inline]
pub fn best(bytes: &[u8], layout: DirLayout, index: usize) -> u16 {
    if index < valid(bytes, layout) {
        be16(bytes, bests_offset(layout) + index * 2)
    } else {
        NO_BLOCK
    }
}

/// Highest slot with room for `len` bytes.
#[must_use]
pub fn find_room(bytes: &[u8], layout: DirLayout, len: usize) -> Option<usize> {
    let start = bests_offset(layout);
    let array = &bytes[start..start + valid(bytes, layout) * 2];
    let fits = |pair: &[u8; 2]| {
        let best = u16::from_be_bytes(*pair);
        best != NO_BLOCK && usize::from(best) >= len
    };
    array.as_chunks::<2>().0.iter().rposition(fits)
}

/// Makes a block whose header is written the empty index of data blocks from `first` on.
pub fn init(edit: &mut EditBytes<'_>, layout: DirLayout, first: u32) {
    edit.put_be32(header_offset(layout), first);
    put_counts(edit, layout, 0, 0);
}

fn put_counts(edit: &mut EditBytes<'_>, layout: DirLayout, valid: usize, used: usize) {
    edit.put_be32(header_offset(layout) + 4, valid as u32);
    edit.put_be32(header_offset(layout) + 8, used as u32);
}

/// Sets slot `index` (below the capacity) and keeps the counts: the array grows to it, and shrinks
/// when its last data block goes away.
pub fn set_best(edit: &mut EditBytes<'_>, layout: DirLayout, index: usize, value: u16) {
    let old = best(edit.bytes(), layout, index);
    if old == value {
        return;
    }
    let slot = |index: usize| bests_offset(layout) + index * 2;
    let (old_valid, mut used) = (valid(edit.bytes(), layout), used(edit.bytes(), layout));
    let mut valid = old_valid.max(index + 1);
    for hole in old_valid..valid {
        edit.put_be16(slot(hole), NO_BLOCK);
    }
    edit.put_be16(slot(index), value);
    if old == NO_BLOCK {
        used += 1;
    } else if value == NO_BLOCK {
        used = used.saturating_sub(1);
        while valid > 0 && be16(edit.bytes(), slot(valid - 1)) == NO_BLOCK {
            valid -= 1;
            edit.put_be16(slot(valid), 0);
        }
    }
    put_counts(edit, layout, valid, used);
}

/// Checks a free-index block.
///
/// # Errors
/// The field and its defect.
pub fn verify_free(bytes: &[u8], layout: DirLayout) -> Result<(), String> {
    let (first, capacity) = (first(bytes, layout), capacity(layout));
    let (valid, used) = (valid(bytes, layout), used(bytes, layout));
    if !(first as usize).is_multiple_of(capacity) || u64::from(first) >> (35 - layout.block_log) > 0
    {
        return Err(format!("first data block is {first}, with {capacity} per block"));
    }
    if valid > capacity {
        return Err(format!("{valid} slots, but there is room for {capacity}"));
    }
    let mut found = 0;
    for index in 0..valid {
        let best = best(bytes, layout, index);
        if best != NO_BLOCK && usize::from(best) > layout.data_capacity() {
            return Err(format!("best length {index} is {best}"));
        }
        found += usize::from(best != NO_BLOCK);
    }
    if found != used {
        return Err(format!("used count is {used}, but {found} slots are"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;

    #[test]
    fn slots_come_and_go_with_the_counts() {
        let layout =
            DirLayout { crc: true, ftype: true, fold_case: false, block_log: 12, fs_block_log: 12 };
        assert_eq!(capacity(layout), 2016);
        let (mut bytes, mut changes) = (vec![0; 4096], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        init(&mut edit, layout, 2016);
        set_best(&mut edit, layout, 3, 100);
        set_best(&mut edit, layout, 1, 500);
        assert_eq!(edit.bytes()[48..60], *b"\0\0\x07\xe0\0\0\0\x04\0\0\0\x02");
        assert_eq!(edit.bytes()[64..72], *b"\xff\xff\x01\xf4\xff\xff\x00\x64");
        assert_eq!(verify_free(edit.bytes(), layout), Ok(()));
        assert_eq!(find_room(edit.bytes(), layout, 100), Some(3));
        assert_eq!(find_room(edit.bytes(), layout, 108), Some(1));
        assert_eq!(find_room(edit.bytes(), layout, 508), None);
        set_best(&mut edit, layout, 3, NO_BLOCK);
        assert_eq!((valid(edit.bytes(), layout), used(edit.bytes(), layout)), (2, 1));
        edit.put_be32(48, 2015);
        assert!(verify_free(edit.bytes(), layout).unwrap_err().contains("first data block"));
        edit.put_be32(48, 2016);
        edit.put_be32(56, 2);
        assert!(verify_free(edit.bytes(), layout).unwrap_err().contains("used count"));
        edit.put_be32(52, 2017);
        assert!(verify_free(edit.bytes(), layout).unwrap_err().contains("2017 slots"));
    }
}
