//! The records of a group's trees, for reading alone.

use super::tree::{may_point_to, pointer_to_root};
use crate::btree::{
    BlockKey, Bnobt, BtreeKind, Cursor, Inobt, Lookup, ReadTree, Refcountbt, Rmapbt, Root,
};
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::{
    AllocRecord, BufferKind, InodeChunkRecord, RefcountDomain, RefcountKey, RmapKey, RmapRecord,
    TreeGeometry,
};
use crate::group::GroupState;
use crate::units::{AgBlock, AgInode, AgNumber, FileBlock, InodeNumber};
use crate::volume::Volume;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Range};
use undercroft_block::Sector;

/// Visits the free extents of a group in the order of one of its trees:
/// [`Bnobt`](crate::btree::Bnobt), by place, or [`Cntbt`](crate::btree::Cntbt), by length.
///
/// # Errors
/// A header or the tree is damaged, or the device failed.
pub fn free_extents<K>(
    volume: &Volume,
    ag: AgNumber,
    visit: impl FnMut(AllocRecord),
) -> Result<(), Error>
where
    K: BtreeKind<Pointer = AgBlock, Record = AllocRecord>,
{
    records::<K>(volume, ag, visit)
}

/// A part of a free extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreePart {
    pub(crate) part: AllocRecord,
    /// All of it.
    pub(crate) whole: AllocRecord,
}

/// Calls `act` with free extents in a range of blocks, cut to the range, of `most` blocks together. The
/// group is locked meanwhile: nothing takes them. Returns where the next ones begin, if there are more.
///
/// # Errors
/// A header or the tree is damaged, or the device failed; those of `act`.
pub(crate) fn with_free_extents(
    volume: &Volume,
    ag: AgNumber,
    range: Range<u32>,
    most: u32,
    act: impl FnOnce(&[FreePart]) -> Result<(), Error>,
) -> Result<Option<u32>, Error> {
    if range.is_empty() {
        return Ok(None);
    }
    let guard = volume.lock_group(ag, true)?;
    let Some(mut guard) = guard else { return Ok(None) };
    let group = guard.state();
    let mut tree = AgReader::<Bnobt> { volume, group, kind: PhantomData };
    // One that begins before the range may reach into it.
    let start = BlockKey::at(AgBlock(range.start));
    let before = Cursor::<Bnobt>::new().find(&mut tree, &start, Lookup::LessOrEqual)?;
    let low = before.map_or(start, |record| BlockKey::at(record.start));
    let high = BlockKey::at(AgBlock(range.end));
    let (mut found, mut left, mut next) = (Vec::new(), most, None);
    Cursor::<Bnobt>::new().for_each_in_range(&mut tree, &low, &high, |record| {
        let first = record.start.0.max(range.start);
        let end = record.start.0.saturating_add(record.len).min(range.end);
        if first >= end {
            return Ok(ControlFlow::Continue(()));
        }
        let len = (end - first).min(left);
        let part = AllocRecord { start: AgBlock(first), len };
        found.push(FreePart { part, whole: record });
        left -= len;
        if left > 0 {
            return Ok(ControlFlow::Continue(()));
        }
        next = Some(first + len);
        Ok(ControlFlow::Break(()))
    })?;
    act(&found)?;
    drop(guard);
    Ok(next)
}

/// Visits the inode chunks of a group, ascending.
///
/// # Errors
/// A header or the tree is damaged, or the device failed.
pub fn inode_chunks(
    volume: &Volume,
    ag: AgNumber,
    visit: impl FnMut(InodeChunkRecord),
) -> Result<(), Error> {
    records::<Inobt>(volume, ag, visit)
}

/// The first inode chunk of a group that begins at or behind `from`.
///
/// # Errors
/// A header or the tree is damaged, or the device failed.
pub(crate) fn first_inode_chunk(
    volume: &Volume,
    ag: AgNumber,
    from: AgInode,
) -> Result<Option<InodeChunkRecord>, Error> {
    // Waits, so there is a guard.
    let Some(mut guard) = volume.lock_group(ag, true)? else { return Ok(None) };
    let group = guard.state();
    let mut tree = AgReader::<Inobt> { volume, group, kind: PhantomData };
    Cursor::<Inobt>::new().find(&mut tree, &from, Lookup::GreaterOrEqual)
}

/// Whether the tree of its group says that an inode is in use; `None` if another thread holds the
/// group and the caller does not `wait`.
///
/// # Errors
/// A header or the tree is damaged, or the device failed.
pub(crate) fn is_inode_in_use(
    volume: &Volume,
    number: InodeNumber,
    wait: bool,
) -> Result<Option<bool>, Error> {
    let (ag, inode) = volume.geometry().split_inode(number);
    let Some(mut guard) = volume.lock_group(ag, wait)? else { return Ok(None) };
    let group = guard.state();
    let mut tree = AgReader::<Inobt> { volume, group, kind: PhantomData };
    let record = Cursor::<Inobt>::new().find(&mut tree, &inode, Lookup::LessOrEqual)?;
    Ok(Some(record.is_some_and(|record| {
        let index = inode.0 - record.start.0;
        index < u32::from(InodeChunkRecord::INODES)
            && record.existing() & !record.free & 1 << index != 0
    })))
}

/// Visits the parts of a range of blocks that have more than one owner, ascending.
///
/// # Errors
/// A header or the tree is damaged, or the device failed.
pub fn shared_extents(
    volume: &Volume,
    ag: AgNumber,
    start: AgBlock,
    len: u32,
    mut visit: impl FnMut(AllocRecord),
) -> Result<(), Error> {
    counted(volume, ag, RefcountDomain::Shared, (start, len), |part| {
        visit(part);
        ControlFlow::Continue(())
    })
}

/// The first part of a range of blocks that has more than one owner.
///
/// # Errors
/// As for [`shared_extents`].
pub fn first_shared(
    volume: &Volume,
    ag: AgNumber,
    start: AgBlock,
    len: u32,
) -> Result<Option<AllocRecord>, Error> {
    let mut first = None;
    counted(volume, ag, RefcountDomain::Shared, (start, len), |part| {
        first = Some(part);
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// Visits the blocks of a group that are set aside for copy-on-write, ascending.
///
/// # Errors
/// As for [`shared_extents`].
pub fn staging_extents(
    volume: &Volume,
    ag: AgNumber,
    mut visit: impl FnMut(AllocRecord),
) -> Result<(), Error> {
    let all = (AgBlock(0), volume.geometry().ag_length(ag));
    counted(volume, ag, RefcountDomain::Cow, all, |part| {
        visit(part);
        ControlFlow::Continue(())
    })
}

/// Visits the reverse mappings of a range of blocks, cut to the range, until `visit` breaks.
///
/// # Errors
/// As for [`shared_extents`].
pub(crate) fn owners(
    volume: &Volume,
    ag: AgNumber,
    start: AgBlock,
    len: u32,
    mut visit: impl FnMut(RmapRecord) -> ControlFlow<()>,
) -> Result<(), Error> {
    if !volume.geometry().features.rmapbt() || len == 0 {
        return Ok(());
    }
    let guard = volume.lock_group(ag, true)?;
    let Some(mut guard) = guard else { return Ok(()) };
    let group = guard.state();
    let mut tree = AgReader::<Rmapbt> { volume, group, kind: PhantomData };
    let end = start.0.saturating_add(len);
    let (low, high) = (RmapKey::first_at(start), RmapKey::last_at(AgBlock(end - 1)));
    Cursor::new().for_each_in_range(&mut tree, &low, &high, |record| {
        let first = record.start.max(start);
        let after = record.start.0.saturating_add(record.len).min(end);
        let shift = if record.has_offset() { u64::from(first.0 - record.start.0) } else { 0 };
        let offset = FileBlock(record.offset.0 + shift);
        if after <= first.0 {
            return Ok(ControlFlow::Continue(()));
        }
        Ok(visit(RmapRecord { start: first, len: after - first.0, offset, ..record }))
    })
}

/// Visits the records of the tree of reference counts in a range of blocks, cut to the range.
fn counted(
    volume: &Volume,
    ag: AgNumber,
    domain: RefcountDomain,
    (start, len): (AgBlock, u32),
    mut visit: impl FnMut(AllocRecord) -> ControlFlow<()>,
) -> Result<(), Error> {
    if !volume.geometry().features.reflink() || len == 0 {
        return Ok(());
    }
    let guard = volume.lock_group(ag, true)?;
    let Some(mut guard) = guard else { return Ok(()) };
    let group = guard.state();
    let mut tree = AgReader::<Refcountbt> { volume, group, kind: PhantomData };
    let end = start.0.saturating_add(len);
    let low = RefcountKey { domain, start };
    let high = RefcountKey { domain, start: AgBlock(end - 1) };
    Cursor::new().for_each_in_range(&mut tree, &low, &high, |record| {
        let first = record.start.max(start);
        let after = record.start.0.saturating_add(record.len).min(end);
        Ok(visit(AllocRecord { start: first, len: after - first.0 }))
    })
}

/// Visits the records of a tree. The group is locked meanwhile.
fn records<K: BtreeKind<Pointer = AgBlock>>(
    volume: &Volume,
    ag: AgNumber,
    mut visit: impl FnMut(K::Record),
) -> Result<(), Error> {
    let guard = volume.lock_group(ag, true)?;
    let Some(mut guard) = guard else { return Ok(()) };
    let group = guard.state();
    let mut tree = AgReader::<K> { volume, group, kind: PhantomData };
    Cursor::new().for_each(&mut tree, |record| {
        visit(record);
        Ok(ControlFlow::Continue(()))
    })
}

/// Visits the blocks of a tree of a locked group; leaves are not read.
///
/// # Errors
/// The tree is damaged, or the device failed.
pub(crate) fn tree_blocks<K: BtreeKind<Pointer = AgBlock>>(
    volume: &Volume,
    group: &GroupState,
    mut visit: impl FnMut(AgBlock),
) -> Result<(), Error> {
    let mut tree = AgReader::<K> { volume, group, kind: PhantomData };
    if let Root::Block { pointer, .. } = tree.root() {
        visit(pointer);
    }
    Cursor::<K>::for_each_below_root(&mut tree, |block| {
        visit(block);
        Ok(())
    })
}

/// A tree of a locked group, without a transaction.
struct AgReader<'a, K> {
    volume: &'a Volume,
    group: &'a GroupState,
    kind: PhantomData<K>,
}

impl<K: BtreeKind<Pointer = AgBlock>> ReadTree for AgReader<'_, K> {
    type Kind = K;
    type Error = Error;

    fn geometry(&self) -> &TreeGeometry {
        self.volume.tree_geometry(K::TREE)
    }

    fn owner(&self) -> u64 {
        self.group.number.0.into()
    }

    fn root(&self) -> Root<'_, AgBlock> {
        pointer_to_root(self.group, K::TREE)
    }

    fn contains(&self, pointer: AgBlock) -> bool {
        may_point_to(self.volume.geometry(), self.group, pointer)
    }

    fn sector_of(&self, pointer: AgBlock) -> Sector {
        self.volume.geometry().ag_sector(self.group.number, pointer)
    }

    fn read(&mut self, pointer: AgBlock, _level: usize) -> Result<BufferRef, Error> {
        let address = self.volume.address(self.group.number, pointer, 1);
        self.volume.cache().read(&address, BufferKind::Tree(K::TREE))
    }

    fn prefetch(&self, pointers: &[AgBlock]) {
        let inside = pointers.iter().filter(|pointer| self.contains(**pointer));
        let address = |pointer: &AgBlock| self.volume.address(self.group.number, *pointer, 1);
        self.volume.cache().prefetch(inside.map(address));
    }
}
