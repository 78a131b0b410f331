//! A tree in memory.

use crate::btree::store::PointerOf;
use crate::btree::{BlockPointer, BtreeKind, NewRoot, ReadTree, Root, WriteTree};
use crate::bytes::{Changes, EditBytes};
use crate::cache::{BufferAddress, BufferRef, EditGuard, MetaBuffer};
use crate::error::TreeCorruption;
use crate::format::{
    BmapRoot, BufferKind, HeaderLayout, HeightLimit, MAX_TREE_HEIGHT, NewHeader, TreeGeometry,
};
use crate::units::{FileBlock, FsBlock};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use undercroft_block::Sector;

/// Blocks `FIRST..` of the pretended group or volume belong to no header.
const FIRST: u64 = 4;
/// One sector, as on the smallest v4 volumes; the fan-out makes trees higher still.
const BLOCK_SIZE: usize = 512;
const UUID: [u8; 16] = [0x5a; 16];
const OWNER: u64 = 0x1234;

/// Pointers of test trees are made from plain numbers.
pub(super) trait TestPointer: BlockPointer {
    fn from_number(number: u64) -> Self;
}

impl TestPointer for crate::units::AgBlock {
    fn from_number(number: u64) -> Self {
        Self(u32::try_from(number).unwrap())
    }
}

impl TestPointer for FsBlock {
    fn from_number(number: u64) -> Self {
        Self(number)
    }
}

#[derive(Clone, Debug)]
enum Place {
    Block { pointer: u64, height: u8 },
    Inline(BmapRoot),
}

/// A tree and all its blocks.
pub(super) struct MemoryTree<K> {
    pub(super) geometry: TreeGeometry,
    pub(super) blocks: BTreeMap<u64, BufferRef>,
    root: Place,
    free: Vec<u64>,
    next: u64,
    /// Blocks that may still be taken.
    pub(super) space: usize,
    kind: PhantomData<K>,
}

impl<K> MemoryTree<K>
where
    K: BtreeKind,
    K::Pointer: TestPointer,
{
    /// An empty tree with at most so many entries per leaf and node. With `fork_len` the root is inside an inode whose fork has that size.
    pub(super) fn new(fanout: (usize, usize), crc: bool, fork_len: Option<usize>) -> Self {
        let limit = HeightLimit::Records(u64::MAX);
        let mut geometry = TreeGeometry::new(K::TREE, BLOCK_SIZE, crc, true, limit);
        assert!(fanout.0 <= geometry.leaf_max && fanout.1 <= geometry.node_max);
        (geometry.leaf_max, geometry.node_max) = fanout;
        geometry.max_height = MAX_TREE_HEIGHT;
        let root = Place::Block { pointer: FIRST, height: 1 };
        let (blocks, free) = (BTreeMap::new(), Vec::new());
        let (next, space) = (FIRST, usize::MAX);
        let mut tree = Self { geometry, blocks, root, free, next, space, kind: PhantomData };
        let (pointer, buffer) = tree.allocate(K::Pointer::from_number(FIRST)).unwrap().unwrap();
        let sector = tree.sector_of(pointer).0;
        let header = NewHeader { level: 0, sector, owner: OWNER, uuid: UUID };
        geometry.layout.init(&mut tree.edit(&buffer).edit(), K::TREE, &header);
        if let Some(fork_len) = fork_len {
            let root = BmapRoot::over_leaf(fork_len, FileBlock(0), FsBlock(FIRST)).unwrap();
            tree.root = Place::Inline(root);
        }
        tree
    }

    /// All bytes of the tree: the root and every block.
    pub(super) fn image(&self) -> (String, BTreeMap<u64, Vec<u8>>) {
        let blocks = self.blocks.iter().map(|(block, buffer)| (*block, buffer.read().to_vec()));
        (format!("{:?}", self.root), blocks.collect())
    }

    /// A copy with blocks of its own.
    pub(super) fn copy(&self) -> Self {
        let copies = self.blocks.iter().map(|(block, buffer)| {
            let bytes = buffer.read().to_vec();
            (*block, MetaBuffer::new(buffer.address().clone(), BufferKind::Tree(K::TREE), bytes))
        });
        Self {
            geometry: self.geometry,
            blocks: copies.collect(),
            root: self.root.clone(),
            free: self.free.clone(),
            next: self.next,
            space: self.space,
            kind: PhantomData,
        }
    }

    /// Changes one byte behind the engine's back: of a block, or of an entry of the root inside
    /// the inode, whose header is checked before the engine sees it.
    pub(super) fn corrupt(&mut self, block: usize, offset: usize, value: u8) {
        let count = self.blocks.len();
        if let Place::Inline(root) = &mut self.root
            && block % 8 == 7
        {
            let entries = &mut root.bytes_mut()[BmapRoot::HEADER_LEN..];
            let offset = offset % entries.len();
            entries[offset] = value;
            return;
        }
        let buffer = self.blocks.values().nth(block % count).unwrap();
        let (mut guard, mut changes) = (buffer.content(), Changes::default());
        let offset = offset % guard.bytes.len();
        EditBytes::new(&mut guard.bytes, &mut changes).put_u8(offset, value);
    }
}

impl<K> ReadTree for MemoryTree<K>
where
    K: BtreeKind,
    K::Pointer: TestPointer,
{
    type Kind = K;
    type Error = TreeCorruption;

    fn geometry(&self) -> &TreeGeometry {
        &self.geometry
    }

    fn owner(&self) -> u64 {
        OWNER
    }

    fn root(&self) -> Root<'_, K::Pointer> {
        match &self.root {
            Place::Block { pointer, height } => {
                Root::Block { pointer: K::Pointer::from_number(*pointer), height: *height }
            }
            Place::Inline(root) => Root::Inline(root),
        }
    }

    fn contains(&self, pointer: K::Pointer) -> bool {
        self.blocks.contains_key(&pointer.number())
    }

    fn sector_of(&self, pointer: K::Pointer) -> Sector {
        Sector(pointer.number())
    }

    fn read(&mut self, pointer: K::Pointer, _: usize) -> Result<BufferRef, TreeCorruption> {
        Ok(self.blocks[&pointer.number()].clone())
    }
}

impl<K> WriteTree for MemoryTree<K>
where
    K: BtreeKind,
    K::Pointer: TestPointer,
{
    fn uuid(&self) -> [u8; 16] {
        UUID
    }

    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        EditGuard(buffer.content())
    }

    fn allocate(
        &mut self,
        hint: PointerOf<Self>,
    ) -> Result<Option<(K::Pointer, BufferRef)>, TreeCorruption> {
        assert!(self.blocks.is_empty() || self.contains(hint));
        if self.space == 0 {
            return Ok(None);
        }
        self.space -= 1;
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let pointer = K::Pointer::from_number(number);
        let address = BufferAddress::contiguous(self.sector_of(pointer), 1);
        let bytes = vec![0; BLOCK_SIZE];
        let buffer = MetaBuffer::new(address, BufferKind::Tree(K::TREE), bytes);
        assert!(self.blocks.insert(number, buffer.clone()).is_none());
        Ok(Some((pointer, buffer)))
    }

    fn free(&mut self, pointer: K::Pointer, _: BufferRef) -> Result<(), TreeCorruption> {
        // A corrupt tree may free a block twice; a sound one never does (see `structure`).
        if self.blocks.remove(&pointer.number()).is_some() {
            self.free.push(pointer.number());
            self.space = self.space.saturating_add(1);
        }
        Ok(())
    }

    fn set_root(&mut self, root: NewRoot<K::Pointer>) -> Result<(), TreeCorruption> {
        self.root = match (root, &self.root) {
            (NewRoot::Block { pointer, height }, Place::Block { .. }) => {
                Place::Block { pointer: pointer.number(), height }
            }
            (NewRoot::Inline(root), Place::Inline(old)) => {
                assert_eq!(root.as_bytes().len(), old.as_bytes().len());
                Place::Inline(root)
            }
            _ => panic!("a root never changes its variety"),
        };
        Ok(())
    }
}

#[test]
fn a_new_tree_is_one_empty_leaf() {
    let tree = MemoryTree::<super::super::Bnobt>::new((57, 38), true, None);
    let bytes = tree.blocks[&FIRST].read();
    assert_eq!(HeaderLayout::level(&bytes), 0);
    assert_eq!(HeaderLayout::numrecs(&bytes), 0);
}
