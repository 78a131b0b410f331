//! Block form: changes inside the one block
//! (docs/algorithms/directories.md#short-form-and-block-form).

use super::form::take_front;
use super::{NewEntry, shrink};
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::da::DaForkMut;
use crate::error::Error;
use crate::format::da_block::PAIR_SIZE;
use crate::format::dir_block::{self, BlockTable};
use crate::format::dir_data::{self, FreeRegion};
use crate::format::dir_layout::DirLayout;
use crate::format::dir_pairs;
use crate::units::FileBlock;

/// Adds an entry; `false` (and the directory as it was) if the block has no room.
pub(super) fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: &BufferRef,
    new: &NewEntry<'_>,
) -> Result<bool, Error> {
    let mut guard = fork.edit(block);
    let mut edit = guard.edit();
    insert_entry(&mut edit, layout, new).map_err(|what| fork.corrupt(FileBlock(0), what))
}

fn insert_entry(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    new: &NewEntry<'_>,
) -> Result<bool, String> {
    let table = dir_block::table(edit.bytes());
    let Some(table) = make_room(edit, layout, table, new.len)? else { return Ok(false) };
    let BlockTable { base, count, stale } = table;
    let end = if stale > 0 { base } else { base - PAIR_SIZE };
    let offset = take_front(edit, layout, new, end)?;
    let index = dir_pairs::search(edit.bytes(), base, count, new.hash);
    let pointer = layout.pointer(0, offset);
    if stale > 0 && dir_pairs::reuse_stale(edit, base, count, index, new.hash, pointer) {
        dir_block::put_tail(edit, count, stale - 1);
    } else {
        // `make_room` freed the eight bytes before the table for this.
        let grown = dir_block::put_tail(edit, count + 1, stale);
        edit.copy_within(base..base + index * PAIR_SIZE, grown.base);
        dir_pairs::put(edit, grown.base, index, new.hash, pointer);
    }
    Ok(true)
}

/// How a block comes to room for an entry and its pair.
enum BlockFit {
    /// There is.
    Ready,
    /// Stale pairs go.
    Compact,
    /// The region before the table gives its last eight bytes.
    Take(FreeRegion),
}

/// Whether an entry of `len` bytes fits the block, and how.
fn room(
    bytes: &[u8],
    layout: DirLayout,
    table: BlockTable,
    len: usize,
) -> Result<Option<BlockFit>, String> {
    let longest = dir_data::best(bytes, layout, 0);
    let before = dir_data::region_before(bytes, layout, table.base)?;
    if table.stale > 0 {
        if longest.len >= len {
            return Ok(Some(BlockFit::Ready));
        }
        let gain = PAIR_SIZE * (table.stale - 1);
        let fits = before.map_or(0, |region| region.len) + gain >= len;
        return Ok(fits.then_some(BlockFit::Compact));
    }
    let Some(before) = before else { return Ok(None) };
    let fits = if longest == before {
        longest.len >= len + PAIR_SIZE || dir_data::best(bytes, layout, 1).len >= len
    } else {
        longest.len >= len
    };
    Ok(fits.then_some(BlockFit::Take(before)))
}

/// Whether an entry of `len` bytes fits the block `bytes`.
pub(super) fn has_room(bytes: &[u8], layout: DirLayout, len: usize) -> Result<bool, String> {
    Ok(room(bytes, layout, dir_block::table(bytes), len)?.is_some())
}

/// Sees to it that the longest free region has `len` bytes and that the table has a stale pair or
/// eight unused bytes before it; `None` (and nothing changed) if that cannot be.
fn make_room(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    table: BlockTable,
    len: usize,
) -> Result<Option<BlockTable>, String> {
    match room(edit.bytes(), layout, table, len)? {
        None => Ok(None),
        Some(BlockFit::Ready) => Ok(Some(table)),
        Some(BlockFit::Compact) => compact(edit, layout, table).map(Some),
        Some(BlockFit::Take(before)) => {
            let end = table.base - PAIR_SIZE;
            dir_data::use_free(edit, layout, before, end, PAIR_SIZE, end)?;
            Ok(Some(table))
        }
    }
}

/// Removes all stale pairs but one and gives their bytes to the free region before the table.
fn compact(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    table: BlockTable,
) -> Result<BlockTable, String> {
    let left = dir_pairs::compact(edit, table.base, table.count, 1);
    edit.copy_within(
        table.base..table.base + left * PAIR_SIZE,
        table.base + (table.count - left) * PAIR_SIZE,
    );
    let smaller = dir_block::put_tail(edit, left, 1);
    let gain = smaller.base - table.base;
    dir_data::make_free(edit, layout, table.base, gain, smaller.base)?;
    Ok(smaller)
}

/// Removes the entry at `pointer` with its pair, and shrinks the directory to short form if it
/// fits.
pub(super) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: &BufferRef,
    pointer: u32,
    pair: usize,
) -> Result<(), Error> {
    let mut guard = fork.edit(block);
    let mut edit = guard.edit();
    let table = dir_block::table(edit.bytes());
    let (_, offset) = layout.split_pointer(pointer);
    dir_data::entry(edit.bytes(), layout, offset, table.base)
        .map(|entry| layout.entry_size(entry.name.len()))
        .and_then(|len| dir_data::make_free(&mut edit, layout, offset, len, table.base))
        .map_err(|what| fork.corrupt(FileBlock(0), what))?;
    dir_pairs::set_stale(&mut edit, table.base, pair);
    dir_block::put_tail(&mut edit, table.count, table.stale + 1);
    drop(guard);
    shrink::block_to_short(fork, layout, block)
}
