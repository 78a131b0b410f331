//! Which form a directory has, and reading the blocks that sit at fixed places.

use super::NewEntry;
use super::hash_leaf::HashLeaf;
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::da::{DaFork, DaForkMut, HashTree, identity};
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block;
use crate::format::dir_data;
use crate::format::dir_layout::DirLayout;
use crate::units::FileBlock;

/// The four forms (docs/algorithms/directories.md#forms).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Short,
    Block,
    Leaf,
    Node,
}

/// The form of the directory in `fork`.
pub(super) fn form<F: DaFork + ?Sized>(fork: &mut F, layout: DirLayout) -> Result<Form, Error> {
    if fork.local().is_some() {
        return Ok(Form::Short);
    }
    let (end, block) = (fork.end()?.0, u64::from(fork.block_blocks()));
    if end == 0 {
        return Err(fork.corrupt(FileBlock(0), "the directory has no blocks".into()));
    }
    if fork.size() > 1 << 35 || !fork.size().is_multiple_of(layout.block_size() as u64) {
        let what = format!("the size of the directory is {}", fork.size());
        return Err(fork.corrupt(FileBlock(0), what));
    }
    Ok(if end == block {
        Form::Block
    } else if end == fork.geometry().dir_leaf_block().0 + block {
        Form::Leaf
    } else {
        Form::Node
    })
}

/// The hash tree of a directory in node form.
pub(super) fn hash_tree<F: DaFork + ?Sized>(fork: &F, layout: DirLayout) -> HashTree<HashLeaf> {
    let root = fork.geometry().dir_leaf_block();
    HashTree::new(root, layout.da(), HashLeaf(layout.da()))
}

/// Reads a block that must exist.
pub(super) fn read<F: DaFork + ?Sized>(
    fork: &mut F,
    block: FileBlock,
    kind: BufferKind,
) -> Result<BufferRef, Error> {
    match fork.read(block, kind)? {
        Some(buffer) => Ok(buffer),
        None => Err(fork.corrupt(block, format!("the {kind:?} block is a hole"))),
    }
}

/// Maps `block`, which must be unused, and writes the header of `kind`.
pub(super) fn new_block_at<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: FileBlock,
    kind: BufferKind,
) -> Result<BufferRef, Error> {
    let (found, buffer) = fork.grow(block, kind)?;
    if found != block {
        let what = format!("mapped already, though the directory does not use it as {kind:?}");
        return Err(fork.corrupt(block, what));
    }
    write_header(fork, layout, &buffer, kind);
    Ok(buffer)
}

/// Makes the header of `buffer` that of a block of `kind`.
pub(super) fn write_header<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    buffer: &BufferRef,
    kind: BufferKind,
) {
    let identity = identity(fork, buffer);
    let mut guard = fork.edit(buffer);
    guard.set_kind(kind);
    da_block::write_header(&mut guard.edit(), kind, layout.crc, &identity);
}

/// Writes an entry at the front of the longest free region of the data block at `block` and
/// returns its offset and the longest free length that is left.
pub(super) fn put_entry<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: FileBlock,
    data: &BufferRef,
    new: &NewEntry<'_>,
) -> Result<(usize, u16), Error> {
    let mut guard = fork.edit(data);
    let mut edit = guard.edit();
    match take_front(&mut edit, layout, new, layout.block_size()) {
        Ok(offset) => Ok((offset, dir_data::longest(edit.bytes(), layout))),
        Err(what) => Err(fork.corrupt(block, what)),
    }
}

/// Writes an entry at the front of the longest free region and returns its offset.
pub(super) fn take_front(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    new: &NewEntry<'_>,
    end: usize,
) -> Result<usize, String> {
    let region = dir_data::best(edit.bytes(), layout, 0);
    if region.len < new.len {
        return Err(format!("it has room for {} bytes, its index promises more", region.len));
    }
    dir_data::put_entry(edit, layout, region.offset, &new.entry);
    dir_data::use_free(edit, layout, region, region.offset, new.len, end)?;
    Ok(region.offset)
}

/// Frees the entry at `offset` of the data block at `block` and returns the longest free length.
pub(super) fn free_entry<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: FileBlock,
    data: &BufferRef,
    offset: usize,
) -> Result<u16, Error> {
    let end = layout.block_size();
    let mut guard = fork.edit(data);
    let mut edit = guard.edit();
    let freed = dir_data::entry(edit.bytes(), layout, offset, end)
        .map(|entry| layout.entry_size(entry.name.len()))
        .and_then(|len| dir_data::make_free(&mut edit, layout, offset, len, end));
    match freed {
        Ok(()) => Ok(dir_data::longest(edit.bytes(), layout)),
        Err(what) => Err(fork.corrupt(block, what)),
    }
}
