//! Node form: data blocks, a hash tree and a free index (docs/algorithms/hash-trees.md#node-form).

use super::form::{free_entry, hash_tree, put_entry, read};
use super::free_index::{self, SpaceHint};
use super::{NewEntry, shrink};
use crate::cache::BufferRef;
use crate::da::{DaFork, DaForkMut, Path};
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::dir_data;
use crate::format::dir_layout::DirLayout;
use crate::format::dir_leaf::{self, NO_BLOCK};

/// Adds an entry whose hash belongs to the leaf of `path`.
pub(super) fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    mut path: Path,
    new: &NewEntry<'_>,
    hint: &mut SpaceHint,
) -> Result<(), Error> {
    let found = free_index::find_room(fork, layout, new.len, hint)?;
    let (data_block, data) = match &found {
        Some((found, _)) => {
            (*found, read(fork, layout.data_file_block(*found), BufferKind::DirData)?)
        }
        None => {
            let (data_block, data) = free_index::new_data_block(fork, layout, hint)?;
            dir_data::init(&mut fork.edit(&data).edit(), layout, layout.block_size());
            (data_block, data)
        }
    };
    let block = layout.data_file_block(data_block);
    let (offset, longest) = put_entry(fork, layout, block, &data, new)?;
    match found {
        Some((_, index)) => free_index::set_best_in(fork, layout, &index, data_block, longest)?,
        None => free_index::set_best(fork, layout, data_block, longest)?,
    }

    let (tree, da) = (hash_tree(fork, layout), layout.da());
    if is_full(&path, layout) {
        tree.split(fork, &mut path, &new.hash)?;
    }
    let pointer = layout.pointer(data_block, offset);
    dir_leaf::insert(&mut fork.edit(path.leaf()).edit(), da, new.hash, pointer);
    tree.fix_hashes(fork, &path);
    Ok(())
}

/// Whether the leaf of `path` must be split before it takes another pair.
fn is_full(path: &Path, layout: DirLayout) -> bool {
    let (leaf, da) = (path.leaf().read(), layout.da());
    da.count(&leaf) == da.max_pairs() && dir_leaf::stale(&leaf, da) == 0
}

/// Whether an entry of `len` bytes, whose hash belongs to the leaf of `path`, fits the blocks that
/// are there: [`insert`] with the same `hint` will use no others.
pub(super) fn has_room<F: DaFork + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    path: &Path,
    len: usize,
    mut hint: SpaceHint,
) -> Result<bool, Error> {
    Ok(!is_full(path, layout) && free_index::find_room(fork, layout, len, &mut hint)?.is_some())
}

/// Removes the entry at `pointer` in `data` with its pair in the leaf of `path`, frees blocks that
/// became empty, merges leaves, and shrinks the directory if it fits a smaller form.
pub(super) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    path: Path,
    data: &BufferRef,
    pointer: u32,
    pair: usize,
    hint: &mut SpaceHint,
) -> Result<(), Error> {
    let (data_block, offset) = layout.split_pointer(pointer);
    let block = layout.data_file_block(data_block);
    let longest = free_entry(fork, layout, block, data, offset)?;
    // The stale pair keeps its hash: nothing above the leaf changes.
    dir_leaf::remove(&mut fork.edit(path.leaf()).edit(), layout.da(), pair);
    if data_block > 0 && usize::from(longest) == layout.data_capacity() {
        fork.unmap(block, fork.block_blocks())?;
        free_index::set_best(fork, layout, data_block, NO_BLOCK)?;
        if data_block + 1 == free_index::data_blocks(fork, layout) {
            free_index::trim_size(fork, layout)?;
        }
        hint.released();
    } else {
        free_index::set_best(fork, layout, data_block, longest)?;
        hint.freed(data_block);
    }
    let tree = hash_tree(fork, layout);
    if tree.leaf_kind().is_below_join_threshold(&path.leaf().read()) {
        tree.join(fork, path)?;
    }
    shrink::node_to_leaf(fork, layout)
}
