//! The trees of the groups of a sound volume, read leaf by leaf.

use undercroft_block::{Buffer, Sector, read_buffer};
use undercroft_xfs_format::units::{AgBlock, AgNumber};
use undercroft_xfs_format::{
    Agf, Agi, AllocRecord, BufferKind, Extent, Geometry, Header, HeaderLayout, InodeChunkRecord,
    MAX_TREE_HEIGHT, RmapKey, RmapRecord, TreeKind, TreeRoot, agfl, bytes, verify_tree_block,
};

use crate::disk::Disk;
use crate::error::RecoverError;

/// The chunks of inodes of a group, in ascending order.
pub(crate) fn inode_chunks(
    disk: &Disk,
    ag: AgNumber,
) -> Result<Vec<InodeChunkRecord>, RecoverError> {
    let header = header(disk, ag, BufferKind::Agi)?;
    let agi = Agi::decode(&header, &disk.geometry);
    let sparse = disk.geometry.features.sparse_inodes();
    let mut chunks = Vec::new();
    leaves(disk, ag, TreeKind::Inobt, agi.inobt, |record| {
        chunks.push(InodeChunkRecord::decode(record, sparse));
    })?;
    Ok(chunks)
}

/// Hands over who owns what of a group.
pub(crate) fn owners(
    disk: &Disk,
    ag: AgNumber,
    mut visit: impl FnMut(RmapRecord),
) -> Result<(), RecoverError> {
    let agf = Agf::decode(&header(disk, ag, BufferKind::Agf)?, &disk.geometry);
    leaves(disk, ag, TreeKind::Rmapbt, agf.rmapbt, |record| visit(RmapRecord::decode(record)))
}

/// The blocks of a group that belong to nothing.
pub(crate) struct GroupSpace {
    /// Free extents, in ascending order.
    pub(crate) free: Vec<AllocRecord>,
    /// Blocks that the group keeps for its trees. They were free, and nothing is written to them before
    /// they are a tree's.
    pub(crate) kept: Vec<AgBlock>,
}

/// The free blocks of a group.
pub(crate) fn group_space(disk: &Disk, ag: AgNumber) -> Result<GroupSpace, RecoverError> {
    let geometry = &disk.geometry;
    let agf = Agf::decode(&header(disk, ag, BufferKind::Agf)?, geometry);
    let list = header(disk, ag, BufferKind::Agfl)?;
    let kept = agfl::live(&agf, &list, geometry).collect();
    let mut free = Vec::new();
    leaves(disk, ag, TreeKind::Bnobt, agf.bnobt, |record| {
        free.push(AllocRecord::decode(record));
    })?;
    Ok(GroupSpace { free, kept })
}

fn header(disk: &Disk, ag: AgNumber, kind: BufferKind) -> Result<Buffer, RecoverError> {
    let geometry = &disk.geometry;
    let index = match kind {
        BufferKind::Agf => 1,
        BufferKind::Agi => 2,
        _ => 3,
    };
    let sector = geometry.header_sector(ag, index);
    let bytes = read_buffer(disk.present.as_ref(), sector, geometry.sector_size())?;
    let verified = match kind {
        BufferKind::Agf => Agf::verify(&bytes, geometry, ag),
        BufferKind::Agi => Agi::verify(&bytes, geometry, ag),
        _ => agfl::verify(&bytes, geometry, ag),
    };
    let defect =
        |what: String| RecoverError::Tree { tree: kind.name(), group: ag.0, block: 0, what };
    verified.map_err(|error| defect(error.to_string()))?;
    if let Some(header) = Header::of(kind).filter(|_| geometry.features.crc)
        && !header.checksum_matches(&bytes, geometry.block_size())
    {
        return Err(defect("checksum is wrong".into()));
    }
    Ok(bytes)
}

/// Hands over the records of a tree. A tree has as many blocks as its group at most, so one whose
/// blocks point in circles ends.
fn leaves(
    disk: &Disk,
    ag: AgNumber,
    tree: TreeKind,
    root: TreeRoot,
    mut visit: impl FnMut(&[u8]),
) -> Result<(), RecoverError> {
    let geometry = &disk.geometry;
    let layout = HeaderLayout::new(tree, geometry.features.crc);
    let (_, node_max) = undercroft_xfs_format::block_capacity(tree, layout, geometry.block_size());
    let levels = root.levels.min(u32::from(MAX_TREE_HEIGHT));
    let mut block = root.block;
    for level in (1..levels).rev() {
        let node = tree_block(disk, ag, block, tree, level as u16)?;
        block = AgBlock(bytes::be32(&node, layout.header_len() + node_max * lengths(tree).1));
    }
    for _ in 0..geometry.ag_length(ag) {
        let leaf = tree_block(disk, ag, block, tree, 0)?;
        records(tree, layout, &leaf).for_each(&mut visit);
        block = AgBlock(bytes::be32(&leaf, layout.right()));
        if block.is_null() {
            return Ok(());
        }
    }
    Err(defect(ag, block, tree, "leaves that go in a circle".into()))
}

/// The records of a leaf.
fn records(tree: TreeKind, layout: HeaderLayout, leaf: &[u8]) -> impl Iterator<Item = &[u8]> {
    let count = usize::from(HeaderLayout::numrecs(leaf));
    leaf[layout.header_len()..].chunks_exact(lengths(tree).0).take(count)
}

/// The records of a block that is a sound leaf of a tree.
pub(crate) fn records_of_leaf<'b>(
    geometry: &Geometry,
    bytes: &'b [u8],
    tree: TreeKind,
    sector: Sector,
) -> Option<impl Iterator<Item = &'b [u8]>> {
    is_tree_block(geometry, bytes, tree, 0, sector).ok()?;
    Some(records(tree, HeaderLayout::new(tree, geometry.features.crc), bytes))
}

/// Bytes of a record of a tree, and of the keys of one entry of a node.
const fn lengths(tree: TreeKind) -> (usize, usize) {
    match tree {
        TreeKind::Inobt | TreeKind::Finobt => (InodeChunkRecord::LEN, 4),
        // A low and a high key.
        TreeKind::Rmapbt => (RmapRecord::LEN, 2 * RmapKey::LEN),
        TreeKind::Refcountbt => (12, 4),
        TreeKind::Bmbt => (Extent::LEN, 8),
        TreeKind::Bnobt | TreeKind::Cntbt => (AllocRecord::LEN, 8),
    }
}

fn defect(ag: AgNumber, block: AgBlock, tree: TreeKind, what: String) -> RecoverError {
    RecoverError::Tree { tree: tree.name(), group: ag.0, block: block.0, what }
}

fn tree_block(
    disk: &Disk,
    ag: AgNumber,
    block: AgBlock,
    tree: TreeKind,
    level: u16,
) -> Result<Buffer, RecoverError> {
    let geometry = &disk.geometry;
    if block.0 >= geometry.ag_length(ag) {
        return Err(defect(ag, block, tree, "it lies outside of the group".into()));
    }
    let bytes = disk.blocks(geometry.fs_block(ag, block), 1)?;
    let sound = is_tree_block(geometry, &bytes, tree, level, geometry.ag_sector(ag, block));
    sound.map_err(|what| defect(ag, block, tree, what))?;
    Ok(bytes)
}

/// Checks a block of a tree at a level.
pub(crate) fn is_tree_block(
    geometry: &Geometry,
    bytes: &[u8],
    tree: TreeKind,
    level: u16,
    sector: Sector,
) -> Result<(), String> {
    let header = Header::of(BufferKind::Tree(tree)).filter(|_| geometry.features.crc);
    if let Some(header) = header {
        header.verify(bytes, sector, &geometry.meta_uuid, geometry.block_size())?;
    }
    let layout = HeaderLayout::new(tree, geometry.features.crc);
    verify_tree_block(tree, layout, bytes).map_err(|defect| defect.to_string())?;
    let own = HeaderLayout::level(bytes);
    if own == level { Ok(()) } else { Err(format!("level is {own}, not {level}")) }
}
