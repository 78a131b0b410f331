//! The mapping tree of a fork, as the B+tree engine sees it.

use crate::alloc::{self, BusyBlocks, Request};
use crate::btree::{Bmbt, Cursor, Lookup, NewRoot, ReadTree, Root, WriteTree};
use crate::cache::{BufferRef, EditGuard};
use crate::error::Error;
use crate::format::{
    BmapRoot, BufferKind, RmapFlags, RmapOwner, RmapRecord, TreeGeometry, TreeKind,
};
use crate::group_tree::rmap::{self, Sharing};
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;
use undercroft_block::Sector;

/// A mapping tree open for reading.
#[derive(Debug)]
pub(super) struct MapReader<'a> {
    pub(super) volume: &'a Volume,
    pub(super) inode: InodeNumber,
    pub(super) root: &'a BmapRoot,
}

impl ReadTree for MapReader<'_> {
    type Kind = Bmbt;
    type Error = Error;

    fn geometry(&self) -> &TreeGeometry {
        self.volume.tree_geometry(TreeKind::Bmbt)
    }

    fn owner(&self) -> u64 {
        self.inode.0
    }

    fn root(&self) -> Root<'_, FsBlock> {
        Root::Inline(self.root)
    }

    fn contains(&self, pointer: FsBlock) -> bool {
        self.volume.geometry().valid_extent(pointer, 1)
    }

    fn sector_of(&self, pointer: FsBlock) -> Sector {
        self.volume.geometry().sector(pointer)
    }

    fn read(&mut self, pointer: FsBlock, _level: usize) -> Result<BufferRef, Error> {
        let address = self.volume.block_address(pointer, 1);
        self.volume.cache().read(&address, BufferKind::Tree(TreeKind::Bmbt))
    }

    fn prefetch(&self, pointers: &[FsBlock]) {
        let inside = pointers.iter().filter(|pointer| self.contains(**pointer));
        self.volume.cache().prefetch(inside.map(|pointer| self.volume.block_address(*pointer, 1)));
    }
}

/// A mapping tree open for change.
#[derive(Debug)]
pub(super) struct MapTree<'t, 'v> {
    pub(super) trans: &'t mut Transaction<'v>,
    pub(super) inode: &'t mut InodeState,
    pub(super) kind: ForkKind,
}

impl MapTree<'_, '_> {
    fn root_ref(&self) -> &BmapRoot {
        match self.inode.fork(self.kind).map(|fork| &fork.content) {
            Some(ForkContent::Btree(root, _)) => root,
            _ => unreachable!("a map tree is only opened on a fork in tree format"),
        }
    }
}

impl ReadTree for MapTree<'_, '_> {
    type Kind = Bmbt;
    type Error = Error;

    fn geometry(&self) -> &TreeGeometry {
        self.trans.volume().tree_geometry(TreeKind::Bmbt)
    }

    fn owner(&self) -> u64 {
        self.inode.number.0
    }

    fn root(&self) -> Root<'_, FsBlock> {
        Root::Inline(self.root_ref())
    }

    fn contains(&self, pointer: FsBlock) -> bool {
        self.trans.geometry().valid_extent(pointer, 1)
    }

    fn sector_of(&self, pointer: FsBlock) -> Sector {
        self.trans.geometry().sector(pointer)
    }

    fn read(&mut self, pointer: FsBlock, _level: usize) -> Result<BufferRef, Error> {
        let address = self.trans.volume().block_address(pointer, 1);
        self.trans.read(&address, BufferKind::Tree(TreeKind::Bmbt))
    }
}

impl WriteTree for MapTree<'_, '_> {
    fn uuid(&self) -> [u8; 16] {
        self.trans.geometry().meta_uuid.into_bytes()
    }

    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        self.trans.edit(buffer)
    }

    fn allocate(&mut self, hint: FsBlock) -> Result<Option<(FsBlock, BufferRef)>, Error> {
        allocate_block(self.trans, self.inode, self.kind, hint)
    }

    fn free(&mut self, pointer: FsBlock, buffer: BufferRef) -> Result<(), Error> {
        self.trans.forget(&buffer);
        self.inode.core.nblocks -= 1;
        self.inode.touch();
        let (ag, block) = self.trans.geometry().split_block(pointer);
        let mapping = tree_mapping(self.trans, self.inode.number, self.kind, pointer);
        self.trans.in_group(ag, |trans, group| {
            rmap::remove(trans, group, mapping, Sharing::Excluded)?;
            alloc::free_in_group(trans, group, block, 1, None)
        })
    }

    fn set_root(&mut self, root: NewRoot<FsBlock>) -> Result<(), Error> {
        if let NewRoot::Inline(root) = root
            && let ForkContent::Btree(slot, _) = &mut self.inode.fork_mut(self.kind).content
        {
            *slot = root;
        }
        Ok(())
    }
}

/// Reverse mapping of a block of a mapping tree.
pub(super) fn tree_mapping(
    trans: &Transaction<'_>,
    inode: InodeNumber,
    kind: ForkKind,
    block: FsBlock,
) -> RmapRecord {
    let mut flags = RmapFlags::BMBT_BLOCK;
    if kind == ForkKind::Attr {
        flags |= RmapFlags::ATTR_FORK;
    }
    let start = trans.geometry().split_block(block).1;
    RmapRecord { start, len: 1, owner: RmapOwner::inode(inode), offset: FileBlock(0), flags }
}

/// Takes a block for the mapping tree of a fork.
pub(super) fn allocate_block(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    hint: FsBlock,
) -> Result<Option<(FsBlock, BufferRef)>, Error> {
    let request = Request {
        owner: None,
        busy: BusyBlocks::LastResort,
        ..Request::metadata(hint, 1, RmapOwner::inode(inode.number))
    };
    let Some(extent) = alloc::allocate(trans, &request)? else {
        return Ok(None);
    };
    let block = trans.geometry().fs_block(extent.ag, extent.start);
    let mapping = tree_mapping(trans, inode.number, kind, block);
    trans
        .in_group(extent.ag, |trans, group| rmap::add(trans, group, mapping, Sharing::Excluded))?;
    inode.core.nblocks += 1;
    inode.fork_mut(kind).add_group(extent.ag);
    let address = trans.volume().block_address(block, 1);
    let buffer = trans.fresh(address, BufferKind::Tree(TreeKind::Bmbt));
    Ok(Some((block, buffer)))
}

/// Names the blocks of a fork's tree that a change at `at` could free: those of the path, and their
/// siblings.
pub(super) fn blocks_around(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
    at: FileBlock,
    visit: &mut impl FnMut(FsBlock),
) -> Result<(), Error> {
    let Some(ForkContent::Btree(root, _)) = inode.fork(kind).map(|fork| &fork.content) else {
        return Ok(());
    };
    let mut tree = MapReader { volume, inode: inode.number, root };
    let mut cursor = Cursor::new();
    cursor.lookup(&mut tree, &at, Lookup::LessOrEqual)?;
    cursor.for_each_block(&tree, visit);
    Ok(())
}

/// Moves a block of the tree of a fork near `hint`. The caller claimed a block, and locked the group
/// of the old one.
///
/// # Errors
/// The block is no block of the tree; damage; no space; the device failed.
pub(crate) fn relocate_tree_block(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    block: FsBlock,
    hint: FsBlock,
) -> Result<(), Error> {
    let (owner, block_size) = (inode.number, trans.geometry().block_size());
    if !matches!(inode.fork(kind).map(|fork| &fork.content), Some(ForkContent::Btree(..))) {
        let what = format!("block {block} is one of a mapping tree that it does not have");
        return Err(Error::Inode { inode: owner, what });
    }
    let mut tree = MapTree { trans, inode, kind };
    Cursor::new().relocate(&mut tree, block, hint)?.or_no_space(block_size)
}

/// The blocks of the tree of a fork.
///
/// # Errors
/// The tree is damaged, or the device failed.
pub(crate) fn tree_block_list(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
) -> Result<Vec<FsBlock>, Error> {
    let mut blocks = Vec::new();
    let Some(ForkContent::Btree(root, _)) = inode.fork(kind).map(|fork| &fork.content) else {
        return Ok(blocks);
    };
    let mut tree = MapReader { volume, inode: inode.number, root };
    Cursor::for_each_below_root(&mut tree, |block| {
        if blocks.len() as u64 >= inode.core.nblocks {
            let what = "its mapping tree has more blocks than the inode".to_owned();
            return Err(Error::Inode { inode: inode.number, what });
        }
        blocks.push(block);
        Ok(())
    })?;
    Ok(blocks)
}
