//! Block form: data and hash table in one directory block (docs/format/directories.md#block-form).

use super::data::{self, DataEntry};
use super::layout::{DATA_ALIGN, DirLayout};
use super::pairs;
use crate::BufferKind;
use crate::bytes::{EditBytes, be32};
use crate::geometry::Geometry;
use crate::hash_tree::block::PAIR_SIZE;

/// Size of the tail: count and stale count.
pub const TAIL_SIZE: usize = 8;

/// The hash table's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTable {
    /// Offset of the first pair, where the tiling ends.
    pub base: usize,
    /// Pairs, stale ones included.
    pub count: usize,
    /// Stale pairs.
    pub stale: usize,
}

/// Shape of the table of a verified block.
#[must_use]
#[inline]
pub fn table(bytes: &[u8]) -> BlockTable {
    let tail = bytes.len() - TAIL_SIZE;
    let (count, stale) = (be32(bytes, tail) as usize, be32(bytes, tail + 4) as usize);
    BlockTable { base: tail - count * PAIR_SIZE, count, stale }
}

/// Shape of the table of a block that was not verified; `None` if it cannot be one.
#[must_use]
pub fn checked_table(bytes: &[u8], layout: DirLayout) -> Option<BlockTable> {
    let tail = bytes.len().checked_sub(TAIL_SIZE)?;
    let (count, stale) = (be32(bytes, tail) as usize, be32(bytes, tail + 4) as usize);
    let room = tail.checked_sub(layout.data_start())?;
    (count <= room / PAIR_SIZE && stale <= count).then(|| table(bytes))
}

/// Where the tiling ends in a verified block of block form or data block.
#[must_use]
pub fn tiling_end(bytes: &[u8], kind: BufferKind) -> usize {
    if kind == BufferKind::DirBlock { table(bytes).base } else { bytes.len() }
}

/// Writes the tail for a table of `count` pairs and returns its shape.
pub fn put_tail(edit: &mut EditBytes<'_>, count: usize, stale: usize) -> BlockTable {
    let tail = edit.bytes().len() - TAIL_SIZE;
    edit.put_be32(tail, count as u32);
    edit.put_be32(tail + 4, stale as u32);
    BlockTable { base: tail - count * PAIR_SIZE, count, stale }
}

/// Checks a block of block form: tiling, table, and that the live pairs and the entries match.
///
/// # Errors
/// The field and its defect.
pub fn verify_block(bytes: &[u8], layout: DirLayout, geometry: &Geometry) -> Result<(), String> {
    if bytes.len() != layout.block_size() {
        return Err(format!("block has {} bytes instead of {}", bytes.len(), layout.block_size()));
    }
    let Some(BlockTable { base, count, stale }) = checked_table(bytes, layout) else {
        let tail = bytes.len() - TAIL_SIZE;
        let (count, stale) = (be32(bytes, tail), be32(bytes, tail + 4));
        return Err(format!("hash table has count {count}, stale count {stale}"));
    };
    // One bit per place an entry can be at, for directory blocks of up to 64 KiB.
    let mut entries = [0_u64; 65536 / DATA_ALIGN / 64];
    let mut used = 0;
    data::verify_tiling(bytes, layout, geometry, base, |offset, _| {
        entries[offset / DATA_ALIGN / 64] |= 1 << (offset / DATA_ALIGN % 64);
        used += 1;
    })?;
    pairs::verify(bytes, base, count, stale)?;
    if used != count - stale {
        return Err(format!("{used} entries, but {} live pairs in the table", count - stale));
    }
    for index in 0..count {
        let slot = pairs::pointer(bytes, base, index) as usize;
        if slot == 0 {
            continue;
        }
        let bit = 1 << (slot % 64);
        if entries.get(slot / 64).is_none_or(|word| word & bit == 0) {
            return Err(format!("pair {index} of the table points to no entry ({slot})"));
        }
        entries[slot / 64] &= !bit;
        let DataEntry { name, .. } = data::entry(bytes, layout, slot * DATA_ALIGN, base)?;
        if layout.hash(name) != pairs::hash(bytes, base, index) {
            return Err(format!("pair {index} of the table has not the hash of its name"));
        }
    }
    Ok(())
}
