//! Trees made from their records all at once: blocks of one level side by side, evenly full.

use undercroft_xfs::format::{
    BmapRoot, BufferKind, Extent, ForkFormat, Geometry, Header, HeaderLayout, InodeCore, NewHeader,
    RmapKey, RmapRecord, TreeKind, block_capacity, bytes,
};
use undercroft_xfs::units::{FsBlock, Lsn};

use crate::error::RepairError;
use crate::scratch::Scratch;

/// Longest key.
const KEY: usize = 20;

/// An entry of a node: the lowest key below a block, the highest where trees overlap, and the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    low: [u8; KEY],
    high: [u8; KEY],
    pointer: u64,
}

/// A tree to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreePlan<'g> {
    geometry: &'g Geometry,
    kind: TreeKind,
    layout: HeaderLayout,
    /// Group or inode.
    owner: u64,
}

impl<'g> TreePlan<'g> {
    pub(crate) const fn new(geometry: &'g Geometry, kind: TreeKind, owner: u64) -> Self {
        Self { geometry, kind, layout: HeaderLayout::new(kind, true), owner }
    }

    /// Bytes of a record, and of a key.
    const fn lengths(&self) -> (usize, usize) {
        match self.kind {
            TreeKind::Bnobt | TreeKind::Cntbt => (8, 8),
            TreeKind::Inobt | TreeKind::Finobt => (16, 4),
            TreeKind::Rmapbt => (RmapRecord::LEN, RmapKey::LEN),
            TreeKind::Refcountbt => (12, 4),
            TreeKind::Bmbt => (Extent::LEN, 8),
        }
    }

    fn capacity(&self, level: u16) -> usize {
        let (leaf, node) = block_capacity(self.kind, self.layout, self.geometry.block_size());
        if level == 0 { leaf } else { node }
    }

    /// Blocks of a level with so many entries: none less than half full, and room left in each.
    fn level_blocks(&self, level: u16, entries: usize) -> usize {
        let most = self.capacity(level);
        let wanted = entries.div_ceil((most - most / 8).max(1));
        let full = entries.div_ceil(most);
        let half = (entries / (most / 2).max(1)).max(1);
        wanted.min(half).max(full).max(1)
    }

    /// Blocks of the whole tree, with a root of one block; a root in an inode has room for `root` entries.
    pub(crate) fn blocks(&self, records: usize, root: usize) -> usize {
        let (mut level, mut entries, mut total) = (0, records, 0);
        loop {
            if level > 0 && entries <= root {
                return total;
            }
            let count = self.level_blocks(level, entries);
            total += count;
            if count == 1 && root == 0 {
                return total;
            }
            (level, entries) = (level + 1, count);
        }
    }

    /// Writes the tree of records, which are whole and in order, to `blocks`, of which there are enough.
    /// Returns the entries of the highest level and its number: of one block, or those of a root of `root`
    /// entries.
    pub(crate) fn write(
        &self,
        scratch: &Scratch,
        records: &[u8],
        blocks: &mut dyn Iterator<Item = FsBlock>,
        root: usize,
    ) -> Result<(Vec<Child>, u16), RepairError> {
        let (record, key) = self.lengths();
        let leaves: Vec<&[u8]> = records.chunks_exact(record).collect();
        let mut children = self.level(scratch, 0, leaves.len(), blocks, |range, body| {
            let mut at = 0;
            for bytes in &leaves[range.clone()] {
                body[at..at + record].copy_from_slice(bytes);
                at += record;
            }
            let own = &leaves[range];
            let low = own.first().map_or([0; KEY], |bytes| self.low(bytes, key));
            let high = own.iter().map(|bytes| self.high(bytes)).max().unwrap_or([0; KEY]);
            (low, high)
        })?;
        let mut level = 1;
        while children.len() > root.max(1) {
            let below = children;
            let most = self.capacity(level);
            children = self.level(scratch, level, below.len(), blocks, |range, body| {
                let own = &below[range];
                let pointers = most * self.stored_key(key);
                for (index, child) in own.iter().enumerate() {
                    self.put_child(body, index, pointers, child, key);
                }
                let low = own.first().map_or([0; KEY], |child| child.low);
                (low, own.iter().map(|child| child.high).max().unwrap_or([0; KEY]))
            })?;
            level += 1;
        }
        Ok((children, level))
    }

    /// Bytes of the keys of an entry.
    fn stored_key(&self, key: usize) -> usize {
        if self.kind == TreeKind::Rmapbt { 2 * key } else { key }
    }

    fn put_child(&self, body: &mut [u8], index: usize, pointers: usize, child: &Child, key: usize) {
        let at = index * self.stored_key(key);
        body[at..at + key].copy_from_slice(&child.low[..key]);
        if self.kind == TreeKind::Rmapbt {
            body[at + key..at + 2 * key].copy_from_slice(&child.high[..key]);
        }
        if self.kind.long_pointers() {
            bytes::put_be64(body, pointers + 8 * index, child.pointer);
        } else {
            bytes::put_be32(body, pointers + 4 * index, child.pointer as u32);
        }
    }

    fn low(&self, record: &[u8], key: usize) -> [u8; KEY] {
        let mut low = [0; KEY];
        match self.kind {
            TreeKind::Rmapbt => RmapRecord::decode(record).key().encode(&mut low),
            TreeKind::Bmbt => {
                bytes::put_be64(&mut low, 0, Extent::decode(record).offset.0);
            }
            _ => low[..key].copy_from_slice(&record[..key]),
        }
        low
    }

    fn high(&self, record: &[u8]) -> [u8; KEY] {
        let mut high = [0; KEY];
        if self.kind == TreeKind::Rmapbt {
            RmapRecord::decode(record).high_key().encode(&mut high);
        }
        high
    }

    /// Writes the blocks of a level. `fill` puts a range of entries into the body of one, and tells its keys.
    fn level(
        &self,
        scratch: &Scratch,
        level: u16,
        entries: usize,
        blocks: &mut dyn Iterator<Item = FsBlock>,
        fill: impl Fn(std::ops::Range<usize>, &mut [u8]) -> ([u8; KEY], [u8; KEY]),
    ) -> Result<Vec<Child>, RepairError> {
        let count = self.level_blocks(level, entries);
        let places: Vec<FsBlock> = blocks.take(count).collect();
        if places.len() < count {
            return Err(RepairError::NotSupported("no room for a tree".into()));
        }
        let mut children = Vec::with_capacity(count);
        for (index, place) in places.iter().enumerate() {
            let range = index * entries / count..(index + 1) * entries / count;
            let mut block = self.empty(level, *place);
            bytes::put_be16(&mut block, HeaderLayout::NUMRECS, range.len() as u16);
            let left = index.checked_sub(1).map(|left| places[left]);
            self.put_pointer(&mut block, self.layout.left(), left);
            self.put_pointer(&mut block, self.layout.right(), places.get(index + 1).copied());
            let (low, high) = fill(range, &mut block[self.layout.header_len()..]);
            if let Some(header) = Header::of(BufferKind::Tree(self.kind)) {
                header.stamp(&mut block, Lsn(0), self.geometry.block_size());
            }
            scratch.write(self.geometry.sector(*place), &block)?;
            children.push(Child { low, high, pointer: self.pointer(*place) });
        }
        Ok(children)
    }

    /// A block, as trees name it.
    fn pointer(&self, block: FsBlock) -> u64 {
        if self.kind.long_pointers() {
            block.0
        } else {
            self.geometry.split_block(block).1.0.into()
        }
    }

    fn put_pointer(&self, block: &mut [u8], at: usize, to: Option<FsBlock>) {
        let Some(to) = to else { return };
        if self.kind.long_pointers() {
            bytes::put_be64(block, at, self.pointer(to));
        } else {
            bytes::put_be32(block, at, self.pointer(to) as u32);
        }
    }

    fn empty(&self, level: u16, place: FsBlock) -> Vec<u8> {
        let mut block = vec![0; self.geometry.block_size()];
        let header = NewHeader {
            level,
            sector: self.geometry.sector(place).0,
            owner: self.owner,
            uuid: *self.geometry.meta_uuid.as_bytes(),
        };
        let mut changes = bytes::Changes::default();
        self.layout.init(&mut bytes::EditBytes::new(&mut block, &mut changes), self.kind, &header);
        block
    }
}

impl Child {
    /// The block.
    pub(crate) const fn pointer(&self) -> u64 {
        self.pointer
    }
}

/// Blocks that the tree of a map needs in a fork of so many bytes; 0 if the map fits the fork.
pub(crate) fn map_blocks(geometry: &Geometry, extents: usize, room: usize) -> usize {
    if extents <= room / Extent::LEN {
        return 0;
    }
    let root = room.saturating_sub(BmapRoot::HEADER_LEN) / 16;
    TreePlan::new(geometry, TreeKind::Bmbt, 0).blocks(extents, root)
}

/// Writes a map into a fork: inside it, or as a tree in `blocks`. Returns the format.
pub(crate) fn write_map(
    geometry: &Geometry,
    scratch: &Scratch,
    (core, extents): (&InodeCore, &[Extent]),
    fork: &mut [u8],
    blocks: &[FsBlock],
) -> Result<ForkFormat, RepairError> {
    fork.fill(0);
    let mut records = vec![0; extents.len() * Extent::LEN];
    for (extent, record) in extents.iter().zip(records.chunks_exact_mut(Extent::LEN)) {
        extent.encode(record);
    }
    if records.len() <= fork.len() / Extent::LEN * Extent::LEN {
        fork[..records.len()].copy_from_slice(&records);
        return Ok(ForkFormat::Extents);
    }
    let root = fork.len().saturating_sub(BmapRoot::HEADER_LEN) / 16;
    if root == 0 {
        let what = format!("the fork of inode {} has no room for its map", core.number);
        return Err(RepairError::NotSupported(what));
    }
    let plan = TreePlan::new(geometry, TreeKind::Bmbt, core.number.0);
    let (children, level) = plan.write(scratch, &records, &mut blocks.iter().copied(), root)?;
    bytes::put_be16(fork, BmapRoot::LEVEL, level);
    bytes::put_be16(fork, BmapRoot::NUMRECS, children.len() as u16);
    let body = &mut fork[BmapRoot::HEADER_LEN..];
    for (index, child) in children.iter().enumerate() {
        plan.put_child(body, index, 8 * root, child, 8);
    }
    Ok(ForkFormat::Btree)
}
