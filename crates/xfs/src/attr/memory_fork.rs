//! A fork in memory, for attributes or the target of a symbolic link, and a full check of the
//! attributes it holds (docs/format/checks.md#attributes).

use super::fork_offset::{ForkShape, default_offset, fit};
use crate::cache::{BufferAddress, BufferRef, EditGuard, MetaBuffer};
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::da_block::{self, DaLayout, resolve_magic, verify_node};
use crate::format::samples::geometry;
use crate::format::{
    AttrLeafLayout, AttrShortform, AttrValue, BufferKind, ForkFormat, Namespace,
    attr_remote_blocks, attr_remote_part, verify_attr_leaf, verify_attr_remote, verify_symlink,
};
use crate::geometry::Geometry;
use crate::units::{FileBlock, InodeNumber};
use std::cell::Cell;
use std::collections::BTreeMap;
use undercroft_block::Sector;

/// Namespace, name and, for parent pointers, value.
pub(super) type Key = (Namespace, Vec<u8>, Vec<u8>);

/// What a fork should hold.
pub(super) type Model = BTreeMap<Key, Vec<u8>>;

pub(crate) struct MemoryFork {
    pub(super) geometry: Geometry,
    pub(super) number: InodeNumber,
    local: Option<Vec<u8>>,
    forkoff: u8,
    data_used: usize,
    blocks: BTreeMap<u64, BufferRef>,
    /// No block below it is unused.
    lowest: u64,
    next_sector: u64,
    /// Blocks read so far.
    pub(super) reads: Cell<u64>,
    /// Blocks that may still be mapped.
    pub(super) space: u64,
    size: u64,
    /// Blocks per extent of a symbolic link.
    pub(crate) extent_blocks: u64,
}

impl MemoryFork {
    pub(crate) fn new(block_log: u8, inode_log: u8) -> Self {
        let geometry = geometry(block_log, inode_log);
        let forkoff = default_offset(&geometry, ForkFormat::Extents);
        Self {
            geometry,
            number: InodeNumber(131),
            local: None,
            forkoff,
            data_used: 16,
            blocks: BTreeMap::new(),
            lowest: 0,
            next_sector: 1000,
            reads: Cell::new(0),
            space: u64::MAX,
            size: 0,
            extent_blocks: 1,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    pub(crate) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    fn insert(&mut self, block: u64, blocks: u32, kind: BufferKind) -> BufferRef {
        let sectors = self.geometry.sectors_per_block() * blocks;
        let address = BufferAddress::contiguous(Sector(self.next_sector), sectors);
        // Neighbours in the file are not neighbours on the device.
        self.next_sector += 2 * u64::from(sectors);
        let bytes = vec![0; address.len()];
        let buffer = MetaBuffer::new(address, kind, bytes);
        assert!(self.blocks.insert(block, buffer.clone()).is_none());
        buffer
    }

    fn unused(&mut self, from: FileBlock, len: u64) -> Result<u64, Error> {
        if self.space < len {
            return Err(Error::NoSpace { needed: len, block_size: self.geometry.block_size() });
        }
        self.space -= len;
        while self.blocks.contains_key(&self.lowest) {
            self.lowest += 1;
        }
        let mut first = from.0.max(self.lowest);
        while let Some((block, _)) = self.blocks.range(first..first + len).next_back() {
            first = block + 1;
        }
        Ok(first)
    }

    /// Puts bytes of a disk at a block.
    pub(super) fn put_block(&mut self, block: u64, kind: BufferKind, bytes: Vec<u8>, at: Sector) {
        let address = BufferAddress::contiguous(at, self.geometry.sectors_per_block());
        self.blocks.insert(block, MetaBuffer::new(address, kind, bytes));
    }

    /// Numbers of the mapped blocks.
    pub(super) fn mapped(&self) -> Vec<u64> {
        self.blocks.keys().copied().collect()
    }

    /// The bytes of a mapped block, to be damaged.
    pub(super) fn block_bytes(&mut self, block: u64, change: impl FnOnce(&mut [u8])) {
        change(&mut self.blocks[&block].content().bytes);
    }

    /// Checks every rule of the format and returns what the fork holds.
    pub(super) fn check(&self) -> Model {
        let mut model = Model::new();
        if let Some(local) = &self.local {
            assert!(self.blocks.is_empty() && local.len() <= self.inline_size());
            let list = AttrShortform::parse(local).unwrap();
            assert_eq!(list.size(), local.len());
            for entry in list.entries() {
                add(&mut model, entry.namespace, entry.name, entry.value.to_vec());
            }
            return model;
        }
        if self.blocks.is_empty() {
            return model;
        }
        let mut walk = Walk { seen: Vec::new(), last: vec![None; 8], hash: 0, model };
        self.check_block(FileBlock(0), None, &mut walk);
        for last in walk.last.iter().flatten() {
            assert_eq!(da_block::forward(&self.blocks[&last.0].read()), None);
        }
        walk.seen.sort_unstable();
        assert!(walk.seen.iter().copied().eq(self.blocks.keys().copied()), "blocks are used once");
        walk.model
    }

    /// Checks the tree below `block` and returns its last hash.
    fn check_block(&self, block: FileBlock, level: Option<u16>, walk: &mut Walk) -> u32 {
        walk.seen.push(block.0);
        let buffer = &self.blocks[&block.0];
        let bytes = buffer.read();
        let kind = resolve_magic(&bytes, BufferKind::DaAny, self.geometry.features.crc).unwrap();
        assert_eq!(kind, bytes.kind());
        if self.geometry.features.crc {
            let fields = da_block::header_fields(kind).unwrap();
            assert_eq!(da_block::owner(&bytes, kind), Some(self.inode()));
            assert_eq!(bytes[fields.blkno..][..8], buffer.address().first().0.to_be_bytes());
            assert_eq!(&bytes[fields.uuid..][..16], self.geometry.meta_uuid.as_bytes());
        }
        let layout = DaLayout::new(&self.geometry, 1);
        let node = kind == BufferKind::DaNode;
        let own = if node { layout.level(&bytes) } else { 0 };
        assert!(level.is_none_or(|level| level == own), "levels fall by one");
        let before = walk.last[usize::from(own)].replace(block);
        assert_eq!(da_block::backward(&bytes), before);
        if let Some(before) = before {
            assert_eq!(da_block::forward(&self.blocks[&before.0].read()), Some(block));
        }
        if !node {
            return self.check_leaf(&bytes, level.is_none(), walk);
        }
        verify_node(&bytes, layout).unwrap();
        for index in 0..layout.count(&bytes) {
            let last = self.check_block(layout.child(&bytes, index), Some(own - 1), walk);
            assert_eq!(layout.hash(&bytes, index), last, "key {index} of block {block}");
        }
        layout.hash(&bytes, layout.count(&bytes) - 1)
    }

    fn check_leaf(&self, bytes: &[u8], root: bool, walk: &mut Walk) -> u32 {
        verify_attr_leaf(bytes, &self.geometry).unwrap();
        let layout = AttrLeafLayout::new(&self.geometry);
        assert!(root || layout.count(bytes) > 0, "empty leaf in a tree");
        for entry in layout.entries(bytes) {
            assert!(entry.hash >= walk.hash && !entry.incomplete());
            walk.hash = entry.hash;
            let value = match entry.value {
                AttrValue::Local(value) => value.to_vec(),
                AttrValue::Remote { block, len } => self.check_remote(block, len as usize, walk),
            };
            let remote = matches!(entry.value, AttrValue::Remote { .. });
            assert!(remote != layout.is_local(entry.name.len(), value.len()));
            add(&mut walk.model, entry.namespace(), entry.name, value);
        }
        walk.hash
    }

    fn check_remote(&self, first: FileBlock, len: usize, walk: &mut Walk) -> Vec<u8> {
        let mut value = Vec::new();
        for block in first.0..first.0 + u64::from(attr_remote_blocks(&self.geometry, len)) {
            walk.seen.push(block);
            let bytes = self.blocks[&block].read();
            assert_eq!(bytes.kind(), BufferKind::AttrRemote);
            verify_attr_remote(&bytes, &self.geometry).unwrap();
            let part = attr_remote_part(&bytes, &self.geometry, value.len(), len).unwrap();
            value.extend(part);
        }
        value
    }
}

/// What a check gathers on its way.
struct Walk {
    seen: Vec<u64>,
    /// Last block seen on each level.
    last: Vec<Option<FileBlock>>,
    hash: u32,
    model: Model,
}

fn add(model: &mut Model, namespace: Namespace, name: &[u8], value: Vec<u8>) {
    let identity = if namespace == Namespace::Parent { value.clone() } else { Vec::new() };
    assert!(model.insert((namespace, name.to_vec(), identity), value).is_none(), "named twice");
}

impl DaFork for MemoryFork {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn inode(&self) -> InodeNumber {
        self.number
    }

    fn block_blocks(&self) -> u32 {
        1
    }

    fn local(&self) -> Option<&[u8]> {
        self.local.as_deref()
    }

    fn inline_size(&self) -> usize {
        self.geometry.literal_size() - usize::from(self.forkoff) * 8
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn end(&mut self) -> Result<FileBlock, Error> {
        Ok(FileBlock(self.blocks.last_key_value().map_or(0, |(block, _)| block + 1)))
    }

    fn next_mapped(&mut self, from: FileBlock) -> Result<Option<FileBlock>, Error> {
        Ok(self.blocks.range(from.0..).next().map(|(block, _)| FileBlock(*block)))
    }

    fn read(&mut self, block: FileBlock, kind: BufferKind) -> Result<Option<BufferRef>, Error> {
        self.reads.set(self.reads.get() + 1);
        let Some(buffer) = self.blocks.get(&block.0) else { return Ok(None) };
        let bytes = buffer.read();
        let checked = match bytes.kind() {
            found if kind != BufferKind::DaAny && found != kind => Err(format!("is {found:?}")),
            BufferKind::DaNode => verify_node(&bytes, DaLayout::new(&self.geometry, 1)),
            BufferKind::AttrLeaf => verify_attr_leaf(&bytes, &self.geometry),
            BufferKind::Symlink => verify_symlink(&bytes, &self.geometry),
            _ => verify_attr_remote(&bytes, &self.geometry),
        };
        checked.map_err(|what| self.corrupt(block, what))?;
        Ok(Some(buffer.clone()))
    }

    fn corrupt(&self, block: FileBlock, what: String) -> Error {
        Error::Fork { structure: "attributes", inode: self.inode(), block, what }
    }
}

impl DaForkMut for MemoryFork {
    fn edit<'b>(&mut self, buffer: &'b BufferRef) -> EditGuard<'b> {
        EditGuard(buffer.content())
    }

    fn grow(&mut self, from: FileBlock, kind: BufferKind) -> Result<(FileBlock, BufferRef), Error> {
        let block = self.unused(from, 1)?;
        Ok((FileBlock(block), self.insert(block, 1, kind)))
    }

    fn map(&mut self, from: FileBlock, len: u32) -> Result<FileBlock, Error> {
        let first = self.unused(from, len.into())?;
        for block in first..first + u64::from(len) {
            self.insert(block, 1, BufferKind::AttrRemote);
        }
        Ok(FileBlock(first))
    }

    fn fresh(&mut self, block: FileBlock, kind: BufferKind) -> Result<BufferRef, Error> {
        self.blocks.remove(&block.0).expect("mapped before");
        let mut blocks = 1;
        while kind == BufferKind::Symlink
            && blocks < self.extent_blocks
            && self.blocks.remove(&(block.0 + blocks)).is_some()
        {
            blocks += 1;
        }
        Ok(self.insert(block.0, blocks as u32, kind))
    }

    fn unmap(&mut self, block: FileBlock, len: u32) -> Result<(), Error> {
        for block in block.0..block.0 + u64::from(len) {
            let Some(buffer) = self.blocks.remove(&block) else {
                return Err(self.corrupt(FileBlock(block), "is not mapped".into()));
            };
            // A cache takes the lock to drop a buffer: with a guard still open, this would hang.
            drop(buffer.content());
        }
        self.lowest = self.lowest.min(block.0);
        self.space = self.space.saturating_add(len.into());
        Ok(())
    }

    fn set_local(&mut self, content: Option<Vec<u8>>) -> Result<(), Error> {
        assert!(self.blocks.is_empty());
        assert!(content.as_ref().is_none_or(|content| content.len() <= self.inline_size()));
        self.local = content;
        Ok(())
    }

    fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    fn make_room(&mut self, bytes: usize) -> Result<bool, Error> {
        let shape = ForkShape {
            data_format: ForkFormat::Extents,
            data_used: self.data_used,
            forkoff: self.forkoff,
        };
        let offset = fit(&self.geometry, &shape, bytes);
        self.forkoff = offset.unwrap_or(self.forkoff);
        Ok(offset.is_some())
    }
}
