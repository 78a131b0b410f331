//! A tree rooted in the headers of a group, as the B+tree engine sees it.
//!
//! Where each tree gets its blocks and how they are counted: docs/algorithms/btrees.md#trees.

use super::free_list::FreeList;
use super::source::BlockSource;
use crate::btree::{BtreeKind, NewRoot, ReadTree, Root, WriteTree};
use crate::cache::{BufferRef, EditGuard};
use crate::error::Error;
use crate::format::{BufferKind, TreeGeometry, TreeKind, TreeRoot};
use crate::geometry::Geometry;
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::AgBlock;
use std::marker::PhantomData;
use undercroft_block::Sector;

/// One tree of a locked group, open in a transaction. Any can be read; `S` gives blocks to trees
/// that are changed.
#[derive(Debug)]
pub struct AgTree<'t, 'v, K, S = FreeList> {
    trans: &'t mut Transaction<'v>,
    group: &'t mut GroupState,
    kind: PhantomData<(K, S)>,
}

impl<'t, 'v, K: BtreeKind<Pointer = AgBlock>, S> AgTree<'t, 'v, K, S> {
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

impl<K: BtreeKind<Pointer = AgBlock>, S> ReadTree for AgTree<'_, '_, K, S> {
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
        self.group.recent_block(K::TREE, level, pointer)
    }

    fn remember(&mut self, pointer: AgBlock, level: usize, buffer: &BufferRef) {
        self.group.remember_block(K::TREE, level, pointer, buffer);
    }
}

impl<K, S> WriteTree for AgTree<'_, '_, K, S>
where
    K: BtreeKind<Pointer = AgBlock>,
    S: BlockSource<K>,
{
    fn uuid(&self) -> [u8; 16] {
        self.trans.geometry().meta_uuid.into_bytes()
    }

    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        if matches!(K::TREE, TreeKind::Inobt | TreeKind::Finobt) {
            self.group.forget_pick();
        }
        self.trans.edit(buffer)
    }

    fn allocate(&mut self, hint: AgBlock) -> Result<Option<(AgBlock, BufferRef)>, Error> {
        let Some(block) = S::take(self.trans, self.group, hint)? else {
            return Ok(None);
        };
        self.count(1);
        let address = self.trans.volume().address(self.group.number, block, 1);
        Ok(Some((block, self.trans.fresh(address, BufferKind::Tree(K::TREE)))))
    }

    fn free(&mut self, pointer: AgBlock, buffer: BufferRef) -> Result<(), Error> {
        self.trans.forget(&buffer);
        self.count(-1);
        S::give_back(self.trans, self.group, pointer)
    }

    fn set_root(&mut self, root: NewRoot<AgBlock>) -> Result<(), Error> {
        if let NewRoot::Block { pointer, height } = root {
            let slot = root_of_mut(self.group, K::TREE);
            *slot = TreeRoot { block: pointer, levels: height.into() };
        }
        Ok(())
    }
}
