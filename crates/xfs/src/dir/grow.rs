//! Conversions of a directory to the next larger form (docs/format/directories.md#conversions).

use super::form::{hash_tree, new_block_at, write_header};
use super::shortform::{directory_type, open};
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::da::{DaForkMut, Path};
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block::PAIR_SIZE;
use crate::format::dir_block;
use crate::format::dir_data::{self, DataEntry, FreeRegion};
use crate::format::dir_layout::DirLayout;
use crate::format::dir_shortform::{ShortEntry, ShortForm};
use crate::format::{dir_free, dir_leaf, dir_pairs};
use crate::units::FileBlock;
use smallvec::SmallVec;

/// Short form to block form: entries keep their offsets, gaps become free regions.
pub(super) fn short_to_block<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
) -> Result<BufferRef, Error> {
    open(fork, layout)?;
    let content: SmallVec<[u8; 512]> = SmallVec::from_slice(fork.local().unwrap_or_default());
    fork.set_local(None)?;
    let block = new_block_at(fork, layout, FileBlock(0), BufferKind::DirBlock)?;
    let inode = fork.inode();
    let written = ShortForm::new(&content, layout).and_then(|short| {
        let ftype = directory_type(layout);
        let dots = [
            DataEntry { inode, name: b".", ftype },
            DataEntry { inode: short.parent(), name: b"..", ftype },
        ];
        write_block(&mut fork.edit(&block).edit(), layout, dots, short)
    });
    written.map_err(|what| fork.corrupt(FileBlock(0), what))?;
    fork.set_size(layout.block_size() as u64);
    Ok(block)
}

/// Fills a block of block form whose header is written.
fn write_block(
    edit: &mut EditBytes<'_>,
    layout: DirLayout,
    dots: [DataEntry<'_>; 2],
    short: ShortForm<'_>,
) -> Result<(), String> {
    let table = dir_block::put_tail(edit, short.count() + 2, 0);
    dir_data::init(edit, layout, table.base);
    let mut pairs: SmallVec<[(u32, u32); 32]> = SmallVec::new();
    let mut end = layout.data_start();
    let mut put = |offset: usize, entry: &DataEntry<'_>| {
        let len = layout.entry_size(entry.name.len());
        if offset < end || !offset.is_multiple_of(8) || offset + len > table.base {
            return Err(format!("an entry is saved at offset {offset}, where it cannot be"));
        }
        let rest = FreeRegion { offset: end, len: table.base - end };
        dir_data::put_entry(edit, layout, offset, entry);
        dir_data::use_free(edit, layout, rest, offset, len, table.base)?;
        pairs.push((layout.hash(entry.name), layout.pointer(0, offset)));
        end = offset + len;
        Ok(())
    };
    let [dot, dotdot] = dots;
    put(layout.data_start(), &dot)?;
    put(layout.data_start() + layout.entry_size(1), &dotdot)?;
    for found in short.entries() {
        let ShortEntry { offset, entry } = found?;
        put(offset.into(), &entry)?;
    }
    pairs.sort_unstable();
    for (index, (hash, pointer)) in pairs.iter().enumerate() {
        dir_pairs::put(edit, table.base, index, *hash, *pointer);
    }
    Ok(())
}

/// Block form to leaf form: the table moves to a hash block, its space becomes free.
pub(super) fn block_to_leaf<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    block: &BufferRef,
) -> Result<BufferRef, Error> {
    let da = layout.da();
    let place = fork.geometry().dir_leaf_block();
    let leaf = new_block_at(fork, layout, place, BufferKind::DirLeaf1)?;
    let table = dir_block::table(&block.read());
    let pairs = table.base..table.base + table.count * PAIR_SIZE;
    write_header(fork, layout, block, BufferKind::DirData);
    let mut leaf_guard = fork.edit(&leaf);
    let mut leaf_edit = leaf_guard.edit();
    let mut guard = fork.edit(block);
    let mut edit = guard.edit();
    leaf_edit.put_bytes(da.pair_offset(0), &edit.bytes()[pairs]);
    da.set_count(&mut leaf_edit, table.count);
    dir_leaf::set_stale_count(&mut leaf_edit, da, table.stale);
    let size = layout.block_size();
    dir_data::make_free(&mut edit, layout, table.base, size - table.base, size)
        .map_err(|what| fork.corrupt(FileBlock(0), what))?;
    dir_leaf::resize_bests(&mut leaf_edit, 1);
    dir_leaf::set_best(&mut leaf_edit, 0, dir_data::longest(edit.bytes(), layout));
    drop((leaf_guard, guard));
    Ok(leaf)
}

/// Leaf form to node form: the best lengths move to a free-index block, the hash block becomes
/// the root of the hash tree.
pub(super) fn leaf_to_node<F: DaForkMut + ?Sized>(
    fork: &mut F,
    layout: DirLayout,
    leaf: &BufferRef,
    hash: u32,
) -> Result<Path, Error> {
    let place = fork.geometry().dir_free_block();
    let index = new_block_at(fork, layout, place, BufferKind::DirFree)?;
    write_header(fork, layout, leaf, BufferKind::DirLeafN);
    let mut index_guard = fork.edit(&index);
    let mut index_edit = index_guard.edit();
    let mut guard = fork.edit(leaf);
    let mut edit = guard.edit();
    let da = layout.da();
    dir_free::init(&mut index_edit, layout, 0);
    for block in 0..dir_leaf::best_count(edit.bytes()) {
        dir_free::set_best(&mut index_edit, layout, block, dir_leaf::best(edit.bytes(), block));
    }
    let count = da.count(edit.bytes());
    edit.zero(da.pair_offset(count)..da.block_size);
    drop((index_guard, guard));
    hash_tree(fork, layout).descend(fork, hash)
}
