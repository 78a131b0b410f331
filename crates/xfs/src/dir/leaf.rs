//! Leaf form: data blocks and one hash block that also says where there is room
//! (docs/algorithms/directories.md#leaf-form).

use super::form::{free_entry, new_block_at, put_entry, read};
use super::{NewEntry, shrink};
use crate::cache::BufferRef;
use crate::da::DaForkMut;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::dir_data;
use crate::format::dir_layout::DirLayout;
use crate::format::dir_leaf::{self, NO_BLOCK};

/// Where a new entry goes.
pub(super) struct LeafSlot {
    /// Number of the data block.
    target: u32,
    /// The data block is there.
    pub(super) exists: bool,
    /// Stale pairs must go before.
    compact: bool,
}

/// Where an entry of `len` bytes goes; `None` if the hash block `bytes` is full.
pub(super) fn room(bytes: &[u8], layout: DirLayout, len: usize) -> Option<LeafSlot> {
    let da = layout.da();
    let bests = dir_leaf::best_count(bytes);
    let place = |wanted: &dyn Fn(u16) -> bool| {
        (0..bests).find(|index| wanted(dir_leaf::best(bytes, *index)))
    };
    let fits = place(&|best| best != NO_BLOCK && usize::from(best) >= len);
    let target = fits.or_else(|| place(&|best| best == NO_BLOCK)).unwrap_or(bests);
    let stale = dir_leaf::stale(bytes, da);
    let pairs = da.count(bytes) + usize::from(stale == 0);
    let compact = dir_leaf::leaf1_size(da, pairs, bests.max(target + 1)) > da.block_size;
    // Without its stale pairs the block has room for the pair and one more best length.
    (!compact || stale >= 2).then_some(LeafSlot {
        target: target as u32,
        exists: fits.is_some(),
        compact,
    })
}

/// Adds an entry; `false` if the hash block is full and the directory must get a hash tree first.
pub(super) fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    leaf: &BufferRef,
    new: &NewEntry<'_>,
) -> Result<bool, Error> {
    let da = layout.da();
    let Some(room) = room(&leaf.read(), layout, new.len) else { return Ok(false) };
    let LeafSlot { target, exists, compact } = room;
    if compact {
        dir_leaf::compact(&mut fork.edit(leaf).edit(), da);
    }
    let block = layout.data_file_block(target);
    let data = if exists {
        read(fork, block, BufferKind::DirData)?
    } else {
        let data = new_block_at(fork, layout, block, BufferKind::DirData)?;
        dir_data::init(&mut fork.edit(&data).edit(), layout, layout.block_size());
        data
    };
    let (offset, longest) = put_entry(fork, layout, block, &data, new)?;
    let mut guard = fork.edit(leaf);
    let mut edit = guard.edit();
    let grown = target as usize >= dir_leaf::best_count(edit.bytes());
    if grown {
        dir_leaf::resize_bests(&mut edit, target as usize + 1);
    }
    dir_leaf::set_best(&mut edit, target as usize, longest);
    dir_leaf::insert(&mut edit, da, new.hash, layout.pointer(target, offset));
    drop(guard);
    if grown {
        fork.set_size((u64::from(target) + 1) << layout.block_log);
    }
    Ok(true)
}

/// Removes the entry at `pointer` in `data` with its pair, frees the data block if it was the
/// last entry there, and shrinks the directory if it fits a smaller form.
pub(super) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    leaf: &BufferRef,
    data: &BufferRef,
    pointer: u32,
    pair: usize,
) -> Result<(), Error> {
    let (data_block, offset) = layout.split_pointer(pointer);
    let block = layout.data_file_block(data_block);
    let longest = free_entry(fork, layout, block, data, offset)?;
    let mut guard = fork.edit(leaf);
    let mut edit = guard.edit();
    dir_leaf::remove(&mut edit, layout.da(), pair);
    // The leaf's verifier saw that all pointers lie below the number of best lengths.
    dir_leaf::set_best(&mut edit, data_block as usize, longest);
    drop(guard);
    if data_block > 0 && usize::from(longest) == layout.data_capacity() {
        shrink::release(fork, layout, leaf, data_block)?;
    }
    shrink::leaf_to_block(fork, layout, leaf)
}
