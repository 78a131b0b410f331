//! Node form: which data block has room, by way of the free index
//! (docs/algorithms/hash-trees.md#node-form).
//!
//! Any block with room is right on disk. A search starts where the last one ended and goes around
//! once, so that names added one after the other cost the same each, however large the directory.

use super::form::new_block_at;
use crate::cache::BufferRef;
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::dir_free;
use crate::format::dir_layout::DirLayout;
use crate::format::dir_leaf::NO_BLOCK;
use crate::units::FileBlock;

/// Where names were added and removed last. Kept in memory between the changes of one directory;
/// without it, or with an outdated one, changes are right but may search longer or use more space.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpaceHint {
    /// Data block that changed last.
    last: Option<u32>,
    /// Length that no other block had room for when all were looked at.
    exhausted: Option<usize>,
    /// All data blocks below the size are mapped.
    dense: bool,
}

impl SpaceHint {
    /// A name of data block `data_block` was removed.
    pub(super) fn freed(&mut self, data_block: u32) {
        self.last = Some(data_block);
        self.exhausted = None;
    }

    /// Data block `data_block` was removed.
    pub(super) fn released(&mut self) {
        *self = Self::default();
    }
}

/// Number of data blocks up to the size of the directory.
pub(super) fn data_blocks<F: DaFork + ?Sized>(fork: &F, layout: DirLayout) -> u32 {
    // `form` refused sizes beyond the data space.
    (fork.size() >> layout.block_log) as u32
}

/// SlotBlock of index block `index` in the file.
fn index_place<F: DaFork + ?Sized>(fork: &F, index: u32) -> FileBlock {
    let start = fork.geometry().dir_free_block().0;
    FileBlock(start + u64::from(index) * u64::from(fork.block_blocks()))
}

/// Reads index block `index`, `None` if there is none.
pub(super) fn index_block<F: DaFork + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    index: u32,
) -> Result<Option<BufferRef>, Error> {
    let place = index_place(fork, index);
    let Some(buffer) = fork.read(place, BufferKind::DirFree)? else { return Ok(None) };
    let first = dir_free::first(&buffer.read(), layout);
    if u64::from(first) != u64::from(index) * dir_free::capacity(layout) as u64 {
        return Err(fork.corrupt(place, format!("its first data block is {first}")));
    }
    Ok(Some(buffer))
}

/// Index block and slot of a data block.
pub(super) const fn index_of(layout: DirLayout, data_block: u32) -> (u32, usize) {
    let capacity = dir_free::capacity(layout) as u32;
    (data_block / capacity, (data_block % capacity) as usize)
}

/// A data block with room for `len` bytes, and its index block.
pub(super) fn find_room<F: DaFork + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    len: usize,
    hint: &mut SpaceHint,
) -> Result<Option<(u32, BufferRef)>, Error> {
    let blocks = data_blocks(fork, layout);
    let last = hint.last.unwrap_or(u32::MAX).min(blocks.saturating_sub(1));
    let (start, slot) = index_of(layout, last);
    let capacity = dir_free::capacity(layout) as u32;
    let index_blocks = blocks.div_ceil(capacity);
    for step in 0..index_blocks {
        let index = (start + index_blocks - step) % index_blocks;
        let Some(buffer) = index_block(fork, layout, index)? else { continue };
        if step == 0 {
            let best = dir_free::best(&buffer.read(), layout, slot);
            if best != NO_BLOCK && usize::from(best) >= len {
                return Ok(Some((last, buffer)));
            }
            if hint.exhausted.is_some_and(|exhausted| len >= exhausted) {
                return Ok(None);
            }
        }
        let slot = dir_free::find_room(&buffer.read(), layout, len);
        if let Some(slot) = slot {
            let found = index * capacity + slot as u32;
            hint.last = Some(found);
            return Ok(Some((found, buffer)));
        }
    }
    hint.exhausted = Some(hint.exhausted.map_or(len, |exhausted| exhausted.min(len)));
    Ok(None)
}

/// Maps a new data block, the lowest that is unused, and returns its number. Its header is
/// written; the free index does not know it yet.
pub(super) fn new_data_block<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    hint: &mut SpaceHint,
) -> Result<(u32, BufferRef), Error> {
    let blocks = data_blocks(fork, layout);
    let from = layout.data_file_block(if hint.dense { blocks } else { 0 });
    let (block, buffer) = fork.grow(from, BufferKind::DirData)?;
    if block >= fork.geometry().dir_leaf_block() {
        return Err(Error::Full(format!("directory {} is full: 32 GiB of names", fork.inode())));
    }
    super::form::write_header(fork, layout, &buffer, BufferKind::DirData);
    let data_block = layout.data_block(block);
    if data_block >= blocks {
        fork.set_size((u64::from(data_block) + 1) << layout.block_log);
        hint.dense |= data_block == blocks;
    }
    hint.last = Some(data_block);
    Ok((data_block, buffer))
}

/// Records the longest free length of a data block; an index block is made if it is missing, and
/// freed when it has nothing left to say.
pub(super) fn set_best<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    data_block: u32,
    longest: u16,
) -> Result<(), Error> {
    let (index, slot) = index_of(layout, data_block);
    let buffer = match index_block(fork, layout, index)? {
        Some(buffer) => buffer,
        None => {
            let place = index_place(fork, index);
            let buffer = new_block_at(fork, layout, place, BufferKind::DirFree)?;
            let first = data_block - slot as u32;
            dir_free::init(&mut fork.edit(&buffer).edit(), layout, first);
            buffer
        }
    };
    set_best_in(fork, layout, &buffer, data_block, longest)
}

/// As [`set_best`], with the index block of the data block.
pub(super) fn set_best_in<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    buffer: &BufferRef,
    data_block: u32,
    longest: u16,
) -> Result<(), Error> {
    let (index, slot) = index_of(layout, data_block);
    if dir_free::best(&buffer.read(), layout, slot) == longest {
        return Ok(());
    }
    let mut guard = fork.edit(buffer);
    let mut edit = guard.edit();
    dir_free::set_best(&mut edit, layout, slot, longest);
    let unused = dir_free::used(edit.bytes(), layout) == 0;
    drop(guard);
    if unused {
        fork.unmap(index_place(fork, index), fork.block_blocks())?;
    }
    Ok(())
}

/// Sets the size of the directory to the end of its last data block, by the free index.
pub(super) fn trim_size<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
) -> Result<(), Error> {
    let (mut index, _) = index_of(layout, data_blocks(fork, layout).saturating_sub(1));
    let capacity = dir_free::capacity(layout) as u32;
    loop {
        if let Some(buffer) = index_block(fork, layout, index)? {
            let bytes = buffer.read();
            let exists = |slot: &usize| dir_free::best(&bytes, layout, *slot) != NO_BLOCK;
            if let Some(slot) = (0..dir_free::valid(&bytes, layout)).rev().find(exists) {
                let blocks = u64::from(index * capacity + slot as u32) + 1;
                drop(bytes);
                fork.set_size(blocks << layout.block_log);
                return Ok(());
            }
        }
        let Some(lower) = index.checked_sub(1) else {
            let place = index_place(fork, 0);
            return Err(fork.corrupt(place, "the free index knows no data block".into()));
        };
        index = lower;
    }
}
