//! Hash blocks of leaf form (leaf1) and node form (leafN) (docs/format/directories.md#hash-leaves).
//!
//! Pairs begin behind the header. A leaf1 ends with the longest free length of every data block.

use super::layout::DirLayout;
use super::pairs;
use crate::bytes::{EditBytes, be16, be32};
use crate::hash_tree::block::{self, DaLayout};

/// In place of a longest free length: the data block does not exist.
pub const NO_BLOCK: u16 = 0xffff;

/// Bytes of the number of data blocks at the end of a leaf1.
pub const TAIL_SIZE: usize = 4;

/// Number of stale pairs.
#[must_use]
#[inline]
pub fn stale(bytes: &[u8], layout: DaLayout) -> usize {
    be16(bytes, layout.info_size() + 2).into()
}

/// Sets the number of stale pairs.
pub fn set_stale_count(edit: &mut EditBytes<'_>, layout: DaLayout, stale: usize) {
    edit.put_be16(layout.info_size() + 2, stale as u16);
}

/// Pairs that are not stale.
#[must_use]
pub fn live(bytes: &[u8], layout: DaLayout) -> usize {
    layout.count(bytes) - stale(bytes, layout)
}

/// Index of the first pair whose hash is not below `hash`.
#[must_use]
#[inline]
pub fn search(bytes: &[u8], layout: DaLayout, hash: u32) -> usize {
    pairs::search(bytes, layout.header_size(), layout.count(bytes), hash)
}

/// Inserts a pair where its hash belongs, in a stale slot if there is one. Otherwise the array
/// grows: the caller made sure that there is room.
pub fn insert(edit: &mut EditBytes<'_>, layout: DaLayout, hash: u32, pointer: u32) {
    let (base, count) = (layout.header_size(), layout.count(edit.bytes()));
    let stale = stale(edit.bytes(), layout);
    let index = search(edit.bytes(), layout, hash);
    if stale > 0 && pairs::reuse_stale(edit, base, count, index, hash, pointer) {
        set_stale_count(edit, layout, stale - 1);
        return;
    }
    edit.copy_within(
        layout.pair_offset(index)..layout.pair_offset(count),
        layout.pair_offset(index + 1),
    );
    pairs::put(edit, base, index, hash, pointer);
    layout.set_count(edit, count + 1);
}

/// Makes pair `index` stale.
pub fn remove(edit: &mut EditBytes<'_>, layout: DaLayout, index: usize) {
    pairs::set_stale(edit, layout.header_size(), index);
    let stale = stale(edit.bytes(), layout);
    set_stale_count(edit, layout, stale + 1);
}

/// Removes all stale pairs; the bytes they leave are zeroed.
pub fn compact(edit: &mut EditBytes<'_>, layout: DaLayout) {
    let count = layout.count(edit.bytes());
    if stale(edit.bytes(), layout) > 0 {
        let left = pairs::compact(edit, layout.header_size(), count, 0);
        edit.zero(layout.pair_offset(left)..layout.pair_offset(count));
        layout.set_count(edit, left);
        set_stale_count(edit, layout, 0);
    }
}

/// Number of data blocks that a leaf1 describes.
#[must_use]
#[inline]
pub fn best_count(bytes: &[u8]) -> usize {
    be32(bytes, bytes.len() - TAIL_SIZE) as usize
}

fn best_offset(block_size: usize, count: usize, index: usize) -> usize {
    block_size - TAIL_SIZE - (count - index) * 2
}

/// Longest free length of data block `index` of a leaf1, [`NO_BLOCK`] if it does not exist.
#[must_use]
#[inline]
pub fn best(bytes: &[u8], index: usize) -> u16 {
    be16(bytes, best_offset(bytes.len(), best_count(bytes), index))
}

/// Sets the longest free length of data block `index` of a leaf1, if it changes.
pub fn set_best(edit: &mut EditBytes<'_>, index: usize, value: u16) {
    if best(edit.bytes(), index) != value {
        let at = best_offset(edit.bytes().len(), best_count(edit.bytes()), index);
        edit.put_be16(at, value);
    }
}

/// Changes the number of data blocks a leaf1 describes; new ones do not exist yet. There is room.
pub fn resize_bests(edit: &mut EditBytes<'_>, count: usize) {
    let (size, old) = (edit.bytes().len(), best_count(edit.bytes()));
    let (from, kept) = (best_offset(size, old, 0), old.min(count));
    edit.copy_within(from..from + kept * 2, best_offset(size, count, 0));
    for index in kept..count {
        edit.put_be16(best_offset(size, count, index), NO_BLOCK);
    }
    if count < old {
        edit.zero(from..best_offset(size, count, 0));
    }
    edit.put_be32(size - TAIL_SIZE, count as u32);
}

/// Bytes of a leaf1 with so many pairs and data blocks.
#[must_use]
pub const fn leaf1_size(layout: DaLayout, pairs: usize, bests: usize) -> usize {
    layout.pair_offset(pairs) + bests * 2 + TAIL_SIZE
}

/// Checks a leaf1.
///
/// # Errors
/// The field and its defect.
pub fn verify_leaf1(bytes: &[u8], layout: DirLayout) -> Result<(), String> {
    let da = layout.da();
    let bests = be32(bytes, da.block_size - TAIL_SIZE) as usize;
    if bests > da.block_size / 2 || leaf1_size(da, da.count(bytes), bests) > da.block_size {
        return Err(format!("{} pairs and {bests} best lengths overlap", da.count(bytes)));
    }
    if block::forward(bytes).is_some() || block::backward(bytes).is_some() {
        return Err("the single leaf has siblings".into());
    }
    for index in 0..bests {
        let best = best(bytes, index);
        if best != NO_BLOCK && usize::from(best) > layout.data_capacity() {
            return Err(format!("best length {index} is {best}"));
        }
    }
    verify_pairs(bytes, layout, bests as u64)
}

/// Checks a leafN.
///
/// # Errors
/// The field and its defect.
pub fn verify_leaf_n(bytes: &[u8], layout: DirLayout) -> Result<(), String> {
    verify_pairs(bytes, layout, 1 << (35 - layout.block_log))
}

fn verify_pairs(bytes: &[u8], layout: DirLayout, data_blocks: u64) -> Result<(), String> {
    let da = layout.da();
    let (count, stale) = (da.count(bytes), stale(bytes, da));
    if count > da.max_pairs() || stale > count {
        return Err(format!("leaf has count {count}, stale count {stale}"));
    }
    pairs::verify(bytes, da.header_size(), count, stale)?;
    for index in 0..count {
        let pointer = pairs::pointer(bytes, da.header_size(), index);
        let (block, offset) = layout.split_pointer(pointer);
        if pointer != 0 && (u64::from(block) >= data_blocks || offset < layout.data_start()) {
            return Err(format!("pair {index} points to {pointer}, where no entry can be"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;

    const LAYOUT: DirLayout =
        DirLayout { crc: true, ftype: true, fold_case: false, block_log: 12, fs_block_log: 12 };

    #[test]
    fn best_lengths_grow_down_from_the_tail() {
        let (mut bytes, mut changes) = (vec![0; 4096], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        resize_bests(&mut edit, 1);
        set_best(&mut edit, 0, 0x11);
        resize_bests(&mut edit, 3);
        set_best(&mut edit, 2, 0x33);
        assert_eq!(edit.bytes()[4084..], *b"\0\0\0\x11\xff\xff\0\x33\0\0\0\x03");
        resize_bests(&mut edit, 1);
        assert_eq!(edit.bytes()[4086..], *b"\0\0\0\0\0\x11\0\0\0\x01");
    }

    #[test]
    fn verifiers_name_the_field() {
        let da = LAYOUT.da();
        let (mut bytes, mut changes) = (vec![0; 4096], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        resize_bests(&mut edit, 1);
        insert(&mut edit, da, 7, 8);
        insert(&mut edit, da, 5, 10);
        assert_eq!(
            edit.bytes()[56..80],
            *b"\0\x02\0\0\0\0\0\0\0\0\0\x05\0\0\0\x0a\0\0\0\x07\0\0\0\x08"
        );
        assert_eq!(verify_leaf1(edit.bytes(), LAYOUT), Ok(()));
        remove(&mut edit, da, 0);
        assert_eq!((stale(edit.bytes(), da), live(edit.bytes(), da)), (1, 1));
        assert_eq!(verify_leaf1(edit.bytes(), LAYOUT), Ok(()));
        set_stale_count(&mut edit, da, 0);
        assert!(verify_leaf_n(edit.bytes(), LAYOUT).unwrap_err().contains("stale count"));
        set_stale_count(&mut edit, da, 1);
        edit.put_be32(72, 4);
        assert!(verify_leaf1(edit.bytes(), LAYOUT).unwrap_err().contains("hash 1"));
        edit.put_be32(72, 7);
        edit.put_be32(76, 512 + 8);
        assert!(verify_leaf1(edit.bytes(), LAYOUT).unwrap_err().contains("pair 1"));
        assert_eq!(verify_leaf_n(edit.bytes(), LAYOUT), Ok(()));
        resize_bests(&mut edit, 2);
        block::set_forward(&mut edit, Some(crate::units::FileBlock(9)));
        assert!(verify_leaf1(edit.bytes(), LAYOUT).unwrap_err().contains("siblings"));
        edit.put_be32(4092, 2000);
        da.set_count(&mut edit, 100);
        assert!(verify_leaf1(edit.bytes(), LAYOUT).unwrap_err().contains("overlap"));
    }
}
