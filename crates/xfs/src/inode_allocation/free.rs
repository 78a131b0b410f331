//! Freeing an inode, and its chunk with the last one (docs/algorithms/inodes.md#freeing).

use crate::alloc;
use crate::alloc::SpaceTree;
use crate::btree::{Cursor, Finobt, Inobt, Lookup};
use crate::error::Error;
use crate::format::{ForkFormat, InodeChunkRecord, InodeCore, InodeFlags, InodeFlags2, RmapOwner};
use crate::group::GroupState;
use crate::inode::{Fork, InodeState, cluster_unit};
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode};

/// Frees an inode that has no blocks and is on no list. The caller commits it; it is not found in
/// memory any more.
///
/// # Errors
/// It owns blocks or is free already; a damaged tree; the device failed.
pub(crate) fn free(trans: &mut Transaction<'_>, inode: &mut InodeState) -> Result<(), Error> {
    let damaged = |what: &str| Error::Inode { inode: inode.number, what: what.to_owned() };
    if inode.core.nblocks != 0 {
        return Err(damaged("it is to be freed, but blocks are left"));
    }
    // Dirty data is dropped; numbers are used again at once.
    inode.memory.discard();
    trans.volume().files().forget(inode);
    if let Some(literal) = &inode.memory.literal {
        // The steps of a removal set it to 0 on the way.
        inode.core.size = literal.size();
    }
    clear(&mut inode.core, trans);
    inode.data = Fork::empty();
    inode.attr = None;
    inode.touch();
    // Before its cluster may go with it: the journal tells of the removal even then.
    inode.store(trans)?;
    let (ag, agino) = trans.geometry().split_inode(inode.number);
    trans.in_group(ag, |trans, group| free_in_group(trans, group, agino))?;
    // While the group is locked: as soon as it is not, a new file may get the number.
    trans.volume().drop_inode(inode.number);
    Ok(())
}

/// Makes the core that of a free inode. The size stays, for those who look for removed files: a kernel leaves
/// that of links and directories, and nothing reads it of a free inode (docs/format/removed-files.md#the-inode).
fn clear(core: &mut InodeCore, trans: &Transaction<'_>) {
    let features = &trans.geometry().features;
    core.mode = 0;
    core.nlink = 0;
    core.forkoff = 0;
    core.data_format = ForkFormat::Extents;
    core.attr_format = ForkFormat::Extents;
    core.attr_extents = 0;
    core.flags = InodeFlags::empty();
    core.flags2 = InodeFlags2::empty();
    core.flags2.set(InodeFlags2::BIGTIME, features.bigtime());
    core.flags2.set(InodeFlags2::NREXT64, features.nrext64());
    (core.extsize, core.cowextsize) = (0, 0);
    core.generation = core.generation.wrapping_add(1);
}

/// Marks an inode free in the trees of its group; its chunk goes with the last one.
fn free_in_group(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    inode: AgInode,
) -> Result<(), Error> {
    // A block with more inodes than a record holds cannot be freed by one record.
    let one_record = trans.geometry().inodes_per_block() <= u32::from(InodeChunkRecord::INODES);
    let mut cursor = Cursor::<Inobt>::new();
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    let record = cursor.find(&mut tree, &inode, Lookup::LessOrEqual)?;
    let record = record.filter(|record| {
        let index = inode.0 - record.start.0;
        index < u32::from(InodeChunkRecord::INODES)
            && record.existing() & !record.free & 1 << index != 0
    });
    let Some(old) = record else {
        let what = format!("inode {inode} is to be freed, but is not in use");
        return Err(group.corrupt("inobt", AgBlock(0), &what));
    };
    let new = InodeChunkRecord {
        free: old.free | 1 << (inode.0 - old.start.0),
        freecount: old.freecount + 1,
        ..old
    };
    if one_record && new.freecount == new.count {
        let agi = &group.agi;
        let left = agi.count.checked_sub(old.count.into());
        let left_free = agi.free_count.checked_sub(old.freecount.into());
        let Some((left, left_free)) = left.zip(left_free) else {
            let what = format!("the chunk at inode {} has more inodes than the group", old.start);
            return Err(group.corrupt("AGI", AgBlock(0), &what));
        };
        cursor.delete(&mut SpaceTree::<Inobt>::new(trans, group))?;
        update_finobt(trans, group, &old, None)?;
        (group.agi.count, group.agi.free_count) = (left, left_free);
        return free_blocks(trans, group, &old);
    }
    cursor.update(&mut SpaceTree::<Inobt>::new(trans, group), &new)?;
    update_finobt(trans, group, &old, Some(&new))?;
    group.agi.free_count += 1;
    Ok(())
}

/// Brings the tree of chunks with free inodes in line: `new` is `None` if the chunk goes.
pub(super) fn update_finobt(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    old: &InodeChunkRecord,
    new: Option<&InodeChunkRecord>,
) -> Result<(), Error> {
    if !trans.geometry().features.finobt() {
        return Ok(());
    }
    let block_size = trans.geometry().block_size();
    let mut tree = SpaceTree::<Finobt>::new(trans, group);
    let mut cursor = Cursor::<Finobt>::new();
    let found = cursor.lookup(&mut tree, &old.start, Lookup::Equal)?;
    if found != (old.freecount > 0) {
        return Err(group.corrupt("finobt", AgBlock(0), "it disagrees with the inobt"));
    }
    match new {
        None if found => cursor.delete(&mut tree),
        None => Ok(()),
        Some(new) if found => cursor.update(&mut tree, new),
        Some(new) => cursor.insert(&mut tree, new)?.or_no_space(block_size),
    }
}

/// Frees the blocks of a chunk: all, or the ones that a sparse chunk has.
pub(super) fn free_blocks(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    record: &InodeChunkRecord,
) -> Result<(), Error> {
    let log = trans.geometry().inodes_per_block_log();
    let mut left = record.existing();
    while left != 0 {
        let first = left.trailing_zeros();
        let count = (left >> first).trailing_ones();
        let run = u64::MAX.checked_shr(64 - count).unwrap_or(0) << first;
        left &= !run;
        let start = AgBlock((record.start.0 + first) >> log);
        let len = count >> log;
        alloc::free_in_group(trans, group, start, len, Some(RmapOwner::INODES))?;
        let unit = cluster_unit(trans.geometry());
        trans.forget_blocks(group.number, start, len, unit);
    }
    Ok(())
}
