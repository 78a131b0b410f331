//! A tree rooted in the headers of a group, as the B+tree engine sees it.
//!
//! Where each tree gets its blocks and how they are counted: algorithms reference, section 1.1.

use super::GroupState;
use crate::alloc::{self, BusyBlocks, Mode, Pool, Request};
use crate::btree::{BtreeKind, NewRoot, ReadTree, Root, WriteTree};
use crate::cache::{BufferRef, EditGuard};
use crate::error::Error;
use crate::format::{AllocRecord, BufferKind, RmapOwner, TreeGeometry, TreeKind, TreeRoot};
use crate::geometry::Geometry;
use crate::trans::Transaction;
use crate::units::AgBlock;
use std::marker::PhantomData;
use undercroft_block::Sector;

/// One tree of a locked group, open in a transaction.
#[derive(Debug)]
pub struct AgTree<'t, 'v, K> {
    trans: &'t mut Transaction<'v>,
    group: &'t mut GroupState,
    kind: PhantomData<K>,
}

impl<'t, 'v, K: BtreeKind<Pointer = AgBlock>> AgTree<'t, 'v, K> {
    /// The tree of kind `K` of this group.
    pub fn new(trans: &'t mut Transaction<'v>, group: &'t mut GroupState) -> Self {
        Self { trans, group, kind: PhantomData }
    }

    /// The group.
    pub(crate) const fn group(&self) -> &GroupState {
        self.group
    }

    /// Counts a block that joined (`+1`) or left (`-1`) the tree.
    fn count(&mut self, delta: i32) {
        let add = |field: &mut u32| *field = field.wrapping_add_signed(delta);
        let (agf, agi) = (&mut self.group.agf, &mut self.group.agi);
        let count_inode_trees = self.trans.geometry().features.inobtcnt();
        match K::TREE {
            TreeKind::Bnobt | TreeKind::Cntbt => add(&mut agf.tree_blocks),
            TreeKind::Rmapbt => {
                add(&mut agf.tree_blocks);
                add(&mut agf.rmap_blocks);
            }
            TreeKind::Refcountbt => add(&mut agf.refcount_blocks),
            TreeKind::Inobt if count_inode_trees => add(&mut agi.inobt_blocks),
            TreeKind::Finobt if count_inode_trees => add(&mut agi.finobt_blocks),
            TreeKind::Inobt | TreeKind::Finobt | TreeKind::Bmbt => {}
        }
    }

    /// Owner of the blocks of a tree that takes them from the free space; `None` for the trees
    /// that are fed by the free list.
    fn space_owner() -> Option<(RmapOwner, Pool)> {
        match K::TREE {
            TreeKind::Inobt => Some((RmapOwner::INODE_TREES, Pool::Ordinary)),
            TreeKind::Finobt => Some((RmapOwner::INODE_TREES, Pool::Metadata)),
            TreeKind::Refcountbt => Some((RmapOwner::REFCOUNT_TREE, Pool::Metadata)),
            TreeKind::Bnobt | TreeKind::Cntbt | TreeKind::Rmapbt | TreeKind::Bmbt => None,
        }
    }

    fn take_block(&mut self, hint: AgBlock) -> Result<Option<AgBlock>, Error> {
        let Some((owner, pool)) = Self::space_owner() else {
            let block = self.group.take_from_list(self.trans.geometry())?;
            if self.group.busy.reuse(block, 1) {
                return Ok(Some(block));
            }
            let what = "the free list waits for a discard";
            return Err(Error::Busy(format!("allocation group {}: {what}", self.group.number)));
        };
        let target = self.trans.geometry().fs_block(self.group.number, hint);
        let busy = BusyBlocks::LastResort;
        let request = Request { pool, busy, ..Request::metadata(target, 1, owner) };
        let mode = Mode::Near(hint);
        let found = alloc::allocate_in_group(self.trans, self.group, &request, mode)?;
        Ok(found.map(|extent| extent.start))
    }
}

/// Where the walk of a tree of a group starts.
pub(super) fn pointer_to_root(group: &GroupState, tree: TreeKind) -> Root<'_, AgBlock> {
    let root = root_of(group, tree);
    // Verified when the header was read: far below 255.
    Root::Block { pointer: root.block, height: root.levels as u8 }
}

/// Whether a tree of a group may have a block at `pointer`.
pub(super) fn may_point_to(geometry: &Geometry, group: &GroupState, pointer: AgBlock) -> bool {
    pointer > geometry.ag_header_last() && pointer.0 < group.agf.length
}

/// Root of a tree in the headers of a group.
fn root_of(group: &GroupState, tree: TreeKind) -> &TreeRoot {
    match tree {
        TreeKind::Bnobt => &group.agf.bnobt,
        TreeKind::Cntbt => &group.agf.cntbt,
        TreeKind::Rmapbt => &group.agf.rmapbt,
        TreeKind::Refcountbt => &group.agf.refcountbt,
        TreeKind::Inobt => &group.agi.inobt,
        // Mapping trees are rooted in inodes and never get here.
        TreeKind::Finobt | TreeKind::Bmbt => &group.agi.finobt,
    }
}

fn root_of_mut(group: &mut GroupState, tree: TreeKind) -> &mut TreeRoot {
    match tree {
        TreeKind::Bnobt => &mut group.agf.bnobt,
        TreeKind::Cntbt => &mut group.agf.cntbt,
        TreeKind::Rmapbt => &mut group.agf.rmapbt,
        TreeKind::Refcountbt => &mut group.agf.refcountbt,
        TreeKind::Inobt => &mut group.agi.inobt,
        TreeKind::Finobt | TreeKind::Bmbt => &mut group.agi.finobt,
    }
}

impl<K: BtreeKind<Pointer = AgBlock>> ReadTree for AgTree<'_, '_, K> {
    type Kind = K;
    type Error = Error;

    fn geometry(&self) -> &TreeGeometry {
        self.trans.volume().tree_geometry(K::TREE)
    }

    fn owner(&self) -> u64 {
        self.group.number.0.into()
    }

    fn root(&self) -> Root<'_, AgBlock> {
        pointer_to_root(self.group, K::TREE)
    }

    fn contains(&self, pointer: AgBlock) -> bool {
        may_point_to(self.trans.geometry(), self.group, pointer)
    }

    fn sector_of(&self, pointer: AgBlock) -> Sector {
        self.trans.geometry().ag_sector(self.group.number, pointer)
    }

    fn read(&mut self, pointer: AgBlock, _level: usize) -> Result<BufferRef, Error> {
        let address = self.trans.volume().address(self.group.number, pointer, 1);
        self.trans.read(&address, BufferKind::Tree(K::TREE))
    }

    fn recent(&self, pointer: AgBlock, level: usize) -> Option<BufferRef> {
        self.group.recent.find(K::TREE, level, pointer)
    }

    fn remember(&mut self, pointer: AgBlock, level: usize, buffer: &BufferRef) {
        self.group.recent.remember(K::TREE, level, pointer, buffer);
    }
}

impl<K: BtreeKind<Pointer = AgBlock>> WriteTree for AgTree<'_, '_, K> {
    fn uuid(&self) -> [u8; 16] {
        self.trans.geometry().meta_uuid.into_bytes()
    }

    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        self.trans.edit(buffer)
    }

    fn allocate(&mut self, hint: AgBlock) -> Result<Option<(AgBlock, BufferRef)>, Error> {
        let Some(block) = self.take_block(hint)? else {
            return Ok(None);
        };
        self.count(1);
        let address = self.trans.volume().address(self.group.number, block, 1);
        Ok(Some((block, self.trans.fresh(address, BufferKind::Tree(K::TREE)))))
    }

    fn free(&mut self, pointer: AgBlock, buffer: BufferRef) -> Result<(), Error> {
        self.trans.forget(&buffer);
        self.count(-1);
        match Self::space_owner() {
            None => {
                self.group.put_on_list(self.trans, pointer)?;
                if let Some(checkpoint) = self.trans.volume().open_checkpoint() {
                    let freed = AllocRecord { start: pointer, len: 1 };
                    self.group.busy.insert(freed, checkpoint, true);
                }
                Ok(())
            }
            Some((owner, _)) => {
                alloc::free_in_group(self.trans, self.group, pointer, 1, Some(owner))
            }
        }
    }

    fn set_root(&mut self, root: NewRoot<AgBlock>) -> Result<(), Error> {
        if let NewRoot::Block { pointer, height } = root {
            let slot = root_of_mut(self.group, K::TREE);
            *slot = TreeRoot { block: pointer, levels: height.into() };
        }
        Ok(())
    }
}
