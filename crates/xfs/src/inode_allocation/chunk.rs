//! Allocation of inode chunks.
//!
//! Order of attempts: docs/algorithms/inodes.md#new-chunks.

use crate::alloc::SpaceTree;
use crate::alloc::{self, Allocation, Mode, Request};
use crate::btree::{Cursor, Finobt, Inobt, Lookup};
use crate::bytes::be32;
use crate::error::Error;
use crate::format::{
    AllocRecord, BufferKind, INODE_GENERATION_OFFSET, InodeChunkRecord, InodeCore, InodeCreateItem,
    RmapOwner,
};
use crate::geometry::INODES_PER_CHUNK;
use crate::group::GroupState;
use crate::inode::{cluster_unit, place};
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode, InodeNumber};

/// Allocates a chunk, or a part of one, in a locked group; `false` if there is no room.
///
/// # Errors
/// Damaged trees, or the device failed.
pub(crate) fn allocate_chunk(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<bool, Error> {
    let blocks = trans.geometry().chunk_blocks();
    if reserve(trans, blocks)
        && let Some(extent) = full_chunk(trans, group, blocks)?
    {
        add_records(trans, group, &extent, None)?;
        return Ok(true);
    }
    match sparse_piece(trans, group, blocks)? {
        Some((extent, chunk)) => {
            add_records(trans, group, &extent, Some(chunk))?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Whether the volume has `blocks` blocks for inodes left, and what entering them may take.
fn reserve(trans: &mut Transaction<'_>, blocks: u32) -> bool {
    let splits = 2 * trans.volume().heights().inode;
    trans.claim(u64::from(blocks) + u64::from(splits)).is_ok()
}

/// Takes an extent, if there is one. Space whose freeing is not durable does not count: a kernel's
/// replay of a new chunk must not meet a block that it cancels.
fn take_extent(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    mode: Mode,
) -> Result<Option<Allocation>, Error> {
    match alloc::allocate_in_group(trans, group, request, mode) {
        Err(Error::Busy(_)) => {
            trans.set_space_waits();
            Ok(None)
        }
        other => other,
    }
}

/// A whole chunk: the first of all where the root directory must be; others right behind the newest
/// one, else near the root of the inode tree.
fn full_chunk(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    blocks: u32,
) -> Result<Option<Allocation>, Error> {
    let geometry = trans.geometry();
    let align = geometry.cluster_alignment();
    let near = geometry.fs_block(group.number, group.agi.inobt.block);
    let mut request = Request::metadata(near, blocks, RmapOwner::INODES);
    request.min_left = trans.volume().heights().inode;
    if !group.agi.newest.is_null() {
        let (newest, _) = geometry.inode_block(group.agi.newest);
        let behind = AgBlock(newest.0.saturating_add(blocks));
        if behind.0.saturating_add(blocks) <= group.agf.length && behind.0.is_multiple_of(align) {
            request.alignment_slop = align - 1;
            let mode = Mode::Exact(behind);
            if let Some(extent) = take_extent(trans, group, &request, mode)? {
                return Ok(Some(extent));
            }
            request.alignment_slop = 0;
        }
    }
    let (root_group, root) = geometry.split_inode(geometry.root_inode);
    if group.agi.count == 0 && group.number == root_group {
        // Checkers compute the place of the first chunk, which need not be the nearest free one.
        let mode = Mode::Exact(geometry.inode_block(root).0);
        return take_extent(trans, group, &request, mode);
    }
    let mode = Mode::Near(group.agi.inobt.block);
    let stripe = geometry.stripe_unit;
    if stripe > 0 && align > 1 && stripe.is_multiple_of(align) {
        request.alignment = stripe;
        if let Some(extent) = take_extent(trans, group, &request, mode)? {
            return Ok(Some(extent));
        }
    }
    request.alignment = align;
    take_extent(trans, group, &request, mode)
}

/// A piece of a chunk, where no whole one fits, and the first block of the chunk around it.
fn sparse_piece(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    blocks: u32,
) -> Result<Option<(Allocation, AgBlock)>, Error> {
    let geometry = trans.geometry();
    let piece = geometry.sparse_alignment;
    let sparse = geometry.features.sparse_inodes() && piece > 0 && piece < blocks;
    if !sparse || !reserve(trans, piece) {
        return Ok(None);
    }
    let align = geometry.inode_alignment;
    let near = geometry.fs_block(group.number, group.agi.inobt.block);
    let mut request = Request::metadata(near, piece, RmapOwner::INODES);
    request.min_left = trans.volume().heights().inode;
    request.alignment = piece;
    // The whole window of a chunk must stay, also where its last blocks are missing.
    let all = AllocRecord { start: AgBlock(0), len: group.agf.length };
    let length = group.busy.in_front_of_limit(all).len;
    let last = (length / align * align).saturating_sub(1);
    request.range = Some((AgBlock(align), AgBlock(last)));
    let mode = Mode::Near(group.agi.inobt.block);
    let extent = take_extent(trans, group, &request, mode)?;
    Ok(extent.map(|extent| (extent, AgBlock(extent.start.0 / align * align))))
}

/// Writes the new inodes and enters them in the trees.
fn add_records(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    extent: &Allocation,
    sparse_chunk: Option<AgBlock>,
) -> Result<(), Error> {
    let geometry = trans.geometry();
    let inodes_log = geometry.inodes_per_block_log();
    write_inodes(trans, group, extent);
    let chunk = sparse_chunk.unwrap_or(extent.start);
    let first = AgInode(chunk.0 << inodes_log);
    if sparse_chunk.is_some() {
        let skipped = (extent.start.0 - chunk.0) << inodes_log;
        add_piece(trans, group, first, skipped, extent.len << inodes_log)?;
    } else {
        // A block of more than 64 inodes carries several records.
        for index in 0..(extent.len << inodes_log) / INODES_PER_CHUNK {
            let start = AgInode(first.0 + index * INODES_PER_CHUNK);
            insert_record(
                trans,
                group,
                InodeChunkRecord { start, holemask: 0, count: 64, freecount: 64, free: u64::MAX },
            )?;
        }
    }
    let count = extent.len << inodes_log;
    group.agi.count += count;
    group.agi.free_count += count;
    group.agi.newest = first;
    Ok(())
}

/// Adds a piece to the sparse record of its chunk, or makes one.
fn add_piece(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgInode,
    skipped: u32,
    count: u32,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let per_hole = InodeChunkRecord::INODES_PER_HOLE;
    let present = (((1_u32 << (count / per_hole)) - 1) << (skipped / per_hole)) as u16;
    let mut cursor = Cursor::<Inobt>::new();
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    // At most 60 inodes: a whole chunk is never a piece.
    let added = count as u8;
    let Some(old) = cursor.find(&mut tree, &start, Lookup::Equal)? else {
        let record = InodeChunkRecord {
            start,
            holemask: !present,
            count: added,
            freecount: added,
            free: u64::MAX,
        };
        return insert_record(trans, group, record);
    };
    if old.holemask & present != present {
        return Err(group.corrupt("inobt", AgBlock(0), "a sparse chunk overlaps another"));
    }
    let merged = InodeChunkRecord {
        holemask: old.holemask & !present,
        count: old.count + added,
        freecount: old.freecount + added,
        ..old
    };
    cursor.update(&mut tree, &merged)?;
    if trans.geometry().features.finobt() {
        let mut tree = SpaceTree::<Finobt>::new(trans, group);
        let mut cursor = Cursor::<Finobt>::new();
        if cursor.lookup(&mut tree, &start, Lookup::Equal)? {
            cursor.update(&mut tree, &merged)?;
        } else {
            cursor.insert(&mut tree, &merged)?.or_no_space(block_size)?;
        }
    }
    Ok(())
}

/// Enters a record in both inode trees.
fn insert_record(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    record: InodeChunkRecord,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    let mut cursor = Cursor::<Inobt>::new();
    if cursor.lookup(&mut tree, &record.start, Lookup::Equal)? {
        return Err(group.corrupt("inobt", AgBlock(0), "a new chunk is there already"));
    }
    cursor.insert(&mut tree, &record)?.or_no_space(block_size)?;
    if trans.geometry().features.finobt() {
        let mut tree = SpaceTree::<Finobt>::new(trans, group);
        let mut cursor = Cursor::<Finobt>::new();
        cursor.lookup(&mut tree, &record.start, Lookup::Equal)?;
        cursor.insert(&mut tree, &record)?.or_no_space(block_size)?;
    }
    Ok(())
}

/// Fills the blocks of a new chunk with inodes that were never used.
fn write_inodes(trans: &mut Transaction<'_>, group: &GroupState, extent: &Allocation) {
    let geometry = trans.geometry();
    let unit = cluster_unit(geometry);
    let first = AgInode(extent.start.0 << geometry.inodes_per_block_log());
    let first = geometry.inode_number(group.number, first);
    let generation = trans.volume().generation(first);
    let mut clusters = Vec::new();
    for block in (extent.start.0..extent.start.0 + extent.len).step_by(unit as usize) {
        let address = trans.volume().address(group.number, AgBlock(block), unit);
        let buffer = trans.fresh(address, BufferKind::InodeCluster);
        let mut guard = trans.edit(&buffer);
        let mut edit = guard.edit();
        let len = edit.bytes().len();
        let first = block << geometry.inodes_per_block_log();
        for (index, inode) in
            edit.region(0..len).chunks_exact_mut(geometry.inode_size()).enumerate()
        {
            let number = geometry.inode_number(group.number, AgInode(first + index as u32));
            InodeCore::write_never_used(inode, geometry, number, generation);
        }
        drop(guard);
        clusters.push(buffer);
    }
    let chunk = InodeCreateItem {
        ag: group.number,
        block: extent.start,
        count: extent.len << geometry.inodes_per_block_log(),
        // At most 2048 bytes.
        inode_size: geometry.inode_size() as u32,
        blocks: extent.len,
        generation,
    };
    trans.create_inodes(chunk, &clusters);
}

/// The generation of an inode that is about to be used. On a live volume it is what a kernel would
/// find there too: what the chunk began with, and one more for each time the inode was freed.
///
/// # Errors
/// Its cluster is damaged; the device failed.
pub(crate) fn next_generation(trans: &Transaction<'_>, number: InodeNumber) -> Result<u32, Error> {
    if !trans.is_live() {
        return Ok(trans.volume().generation(number));
    }
    let (address, offset) = place(trans.geometry(), number);
    let buffer = trans.read(&address, BufferKind::InodeCluster)?;
    Ok(be32(&buffer.read(), offset + INODE_GENERATION_OFFSET))
}
