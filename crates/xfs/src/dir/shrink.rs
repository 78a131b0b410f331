//! Conversions of a directory to the next smaller form, tried after every removal
//! (docs/format/directories.md#conversions; docs/algorithms/directories.md and
//! docs/algorithms/hash-trees.md).

use super::form::{read, write_header};
use super::{free_index, shortform};
use crate::cache::BufferRef;
use crate::da::DaForkMut;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block::PAIR_SIZE;
use crate::format::dir_block;
use crate::format::dir_data::{self, DataEntry, Item};
use crate::format::dir_layout::DirLayout;
use crate::format::dir_leaf::{self, NO_BLOCK};
use crate::format::dir_shortform::{ShortEntry, ShortWriter, entry_size, header_size, is_wide};
use crate::format::{dir_free, dir_pairs};
use crate::units::FileBlock;
use smallvec::SmallVec;

/// Node form to leaf form, if one hash block and one index block are left and fit one block.
pub(super) fn node_to_leaf<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
) -> Result<(), Error> {
    let (da, root) = (layout.da(), fork.geometry().dir_leaf_block());
    let leaf = read(fork, root, BufferKind::DaAny)?;
    if leaf.read().kind() != BufferKind::DirLeafN {
        return Ok(());
    }
    let Some(index) = only_index_block(fork, layout)? else { return Ok(()) };
    let bests: SmallVec<[u16; 64]> = {
        let bytes = index.read();
        let live = dir_leaf::live(&leaf.read(), da);
        let count = free_index::data_blocks(fork, layout) as usize;
        if count > dir_free::capacity(layout)
            || dir_leaf::leaf1_size(da, live, count) > da.block_size
        {
            return Ok(());
        }
        (0..count).map(|block| dir_free::best(&bytes, layout, block)).collect()
    };
    fork.unmap(fork.geometry().dir_free_block(), fork.block_blocks())?;
    write_header(fork, layout, &leaf, BufferKind::DirLeaf1);
    let mut guard = fork.edit(&leaf);
    let mut edit = guard.edit();
    dir_leaf::compact(&mut edit, da);
    let count = da.count(edit.bytes());
    edit.zero(da.pair_offset(count)..da.block_size);
    dir_leaf::resize_bests(&mut edit, bests.len());
    for (block, best) in bests.iter().enumerate() {
        dir_leaf::set_best(&mut edit, block, *best);
    }
    drop(guard);
    leaf_to_block(fork, layout, &leaf)
}

/// The first index block, if there is no other and no other block of the hash tree. Index blocks
/// behind it that know no data block are freed.
fn only_index_block<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
) -> Result<Option<BufferRef>, Error> {
    let (root, first) = (fork.geometry().dir_leaf_block(), fork.geometry().dir_free_block());
    let len = u64::from(fork.block_blocks());
    if fork.next_mapped(FileBlock(root.0 + len))? != Some(first) {
        return Ok(None);
    }
    while let Some(last) = fork.end()?.0.checked_sub(len).filter(|last| *last > first.0) {
        let buffer = read(fork, FileBlock(last), BufferKind::DirFree)?;
        if dir_free::used(&buffer.read(), layout) > 0 {
            return Ok(None);
        }
        fork.unmap(FileBlock(last), fork.block_blocks())?;
    }
    free_index::index_block(fork, layout, 0)
}

/// Leaf form to block form, if only data block 0 is left and ends in room for the table.
pub(super) fn leaf_to_block<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    leaf: &BufferRef,
) -> Result<(), Error> {
    let da = layout.da();
    loop {
        let (bests, last) = {
            let bytes = leaf.read();
            let bests = dir_leaf::best_count(&bytes);
            (bests, bests.checked_sub(1).map_or(NO_BLOCK, |last| dir_leaf::best(&bytes, last)))
        };
        match bests {
            1 => break,
            2.. if usize::from(last) == layout.data_capacity() => {
                release(fork, layout, leaf, bests as u32 - 1)?;
            }
            _ => return Ok(()),
        }
    }
    let block = read(fork, FileBlock(0), BufferKind::DirData)?;
    let size = layout.block_size();
    let live = dir_leaf::live(&leaf.read(), da);
    let needed = live * PAIR_SIZE + dir_block::TAIL_SIZE;
    let tail = dir_data::region_before(&block.read(), layout, size)
        .map_err(|what| fork.corrupt(FileBlock(0), what))?;
    let Some(tail) = tail.filter(|tail| tail.len >= needed) else { return Ok(()) };

    write_header(fork, layout, &block, BufferKind::DirBlock);
    let mut guard = fork.edit(&block);
    let mut edit = guard.edit();
    let base = size - needed;
    dir_data::use_free(&mut edit, layout, tail, base, needed, base)
        .map_err(|what| fork.corrupt(FileBlock(0), what))?;
    let table = dir_block::put_tail(&mut edit, live, 0);
    let mut to = 0;
    let bytes = leaf.read();
    for pair in 0..da.count(&bytes) {
        let pointer = dir_pairs::pointer(&bytes, da.header_size(), pair);
        if pointer != 0 {
            dir_pairs::put(&mut edit, table.base, to, da.hash(&bytes, pair), pointer);
            to += 1;
        }
    }
    drop((bytes, guard));
    fork.unmap(fork.geometry().dir_leaf_block(), fork.block_blocks())?;
    fork.set_size(size as u64);
    block_to_short(fork, layout, &block)
}

/// Frees an empty data block; behind the last one that remains, the directory ends.
pub(super) fn release<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    leaf: &BufferRef,
    data_block: u32,
) -> Result<(), Error> {
    fork.unmap(layout.data_file_block(data_block), fork.block_blocks())?;
    let mut guard = fork.edit(leaf);
    let mut edit = guard.edit();
    dir_leaf::set_best(&mut edit, data_block as usize, NO_BLOCK);
    let mut bests = dir_leaf::best_count(edit.bytes());
    if bests == data_block as usize + 1 {
        while bests > 1 && dir_leaf::best(edit.bytes(), bests - 1) == NO_BLOCK {
            bests -= 1;
        }
        dir_leaf::resize_bests(&mut edit, bests);
        drop(guard);
        fork.set_size((bests as u64) << layout.block_log);
    }
    Ok(())
}

/// Block form to short form, if it fits the fork.
pub(super) fn block_to_short<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: &BufferRef,
) -> Result<(), Error> {
    let content = short_content(&block.read(), layout, fork.inline_size());
    match content.map_err(|what| fork.corrupt(FileBlock(0), what))? {
        Some(content) => {
            fork.unmap(FileBlock(0), fork.block_blocks())?;
            shortform::store(fork, content)
        }
        None => Ok(()),
    }
}

/// The directory of a block in short form, if it takes at most `room` bytes.
fn short_content(bytes: &[u8], layout: DirLayout, room: usize) -> Result<Option<Vec<u8>>, String> {
    let table = dir_block::table(bytes);
    let names = (table.count - table.stale).saturating_sub(2);
    let least = header_size(false) + names * entry_size(layout, 1, false);
    if least > room || names > usize::from(u8::MAX) {
        return Ok(None);
    }
    let mut parent = None;
    let mut entries: SmallVec<[ShortEntry<'_>; 32]> = SmallVec::new();
    for found in dir_data::items(bytes, layout, table.base) {
        let (offset, item) = found?;
        match item {
            Item::Used(DataEntry { name: b".", .. }) | Item::Free(_) => {}
            Item::Used(DataEntry { name: b"..", inode, .. }) => parent = Some(inode),
            Item::Used(entry) => entries.push(ShortEntry { offset: offset as u16, entry }),
        }
    }
    let Some(parent) = parent else { return Err("\"..\" is missing".into()) };
    let wide = is_wide(parent) || entries.iter().any(|short| is_wide(short.entry.inode));
    let size = |short: &ShortEntry<'_>| entry_size(layout, short.entry.name.len(), wide);
    let size = header_size(wide) + entries.iter().map(size).sum::<usize>();
    if size > room {
        return Ok(None);
    }
    let mut writer = ShortWriter::new(layout, parent, wide, size);
    for short in &entries {
        writer.push(short);
    }
    Ok(Some(writer.finish()))
}
