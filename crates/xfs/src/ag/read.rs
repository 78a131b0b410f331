//! The records of a group's trees, for reading alone.

use super::GroupState;
use super::tree::{may_point_to, pointer_to_root};
use crate::btree::{BtreeKind, Cursor, Inobt, ReadTree, Root};
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::{AllocRecord, BufferKind, InodeChunkRecord, TreeGeometry};
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use undercroft_block::Sector;

/// Visits the free extents of a group in the order of one of its trees: [`Bnobt`](crate::btree::Bnobt),
/// by place, or [`Cntbt`](crate::btree::Cntbt), by length.
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
}
