//! The blocks every allocation group starts with (format reference, section 10.4).

use crate::bytes::{put_be16, put_be32, put_be64};
use crate::format::{Agf, Agi, BufferKind, Superblock, TreeHeights, TreeKind, TreeRoot, agfl, agi};
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgInode, AgNumber, InodeNumber};
use undercroft_block::Sector;

const SHORT_HEADER: usize = 56;

/// Reverse-mapping owners of static blocks: -3 and down.
const OWNER_HEADERS: u64 = -3_i64 as u64;
const OWNER_LOG: u64 = -4_i64 as u64;
const OWNER_GROUP: u64 = -5_i64 as u64;
const OWNER_INODE_TREES: u64 = -6_i64 as u64;
const OWNER_REFCOUNT: u64 = -8_i64 as u64;

/// One block or header sector of a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticBlock {
    /// Where it goes.
    pub sector: Sector,
    /// What it holds.
    pub kind: BufferKind,
    /// Its bytes, checksum and LSN zero.
    pub bytes: Vec<u8>,
}

/// Where the roots of a new group are; the same in every group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StaticLayout {
    /// Roots in ascending order.
    roots: Vec<(TreeKind, AgBlock)>,
    /// Blocks of headers and roots: the first free block follows.
    pub(super) blocks: u32,
    /// Least length of the free list while all trees have one level (format reference, 3.3).
    pub(super) free_list_blocks: u32,
}

impl StaticLayout {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let features = &geometry.features;
        let kinds = [
            (TreeKind::Bnobt, true),
            (TreeKind::Cntbt, true),
            (TreeKind::Inobt, true),
            (TreeKind::Finobt, features.finobt()),
            (TreeKind::Rmapbt, features.rmapbt()),
            (TreeKind::Refcountbt, features.reflink()),
        ];
        let headers = geometry.ag_header_blocks();
        let present = kinds.into_iter().filter(|(_, present)| *present).map(|(kind, _)| kind);
        let roots: Vec<_> = present.zip((headers..).map(AgBlock)).collect();
        let blocks = headers + roots.len() as u32;
        let heights = TreeHeights::new(geometry);
        // Two splits on the way to the root, where the tree can grow at all.
        let reserve = |levels: u32| if levels > 1 { 2 } else { 0 };
        let free_list_blocks = 2 * reserve(heights.alloc) + reserve(heights.rmap);
        Self { roots, blocks, free_list_blocks }
    }

    fn root(&self, kind: TreeKind) -> TreeRoot {
        let root = self.roots.iter().find(|(other, _)| *other == kind);
        root.map_or_else(TreeRoot::default, |(_, block)| TreeRoot { block: *block, levels: 1 })
    }
}

/// A range of blocks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    start: u32,
    length: u32,
}

/// The first blocks of group `ag` of a planned volume: superblock copy, headers with an empty free
/// list, and the roots of all trees with the free space and the mappings of exactly these blocks
/// and of the log.
///
/// All space behind them is in the free-space trees; whoever writes them then fills the free lists
/// (at least two blocks for each of bnobt, cntbt and rmapbt) and makes the first inodes.
#[must_use]
pub fn ag_static(superblock: &Superblock, ag: AgNumber) -> Vec<StaticBlock> {
    let geometry = superblock.geometry();
    let layout = StaticLayout::new(&geometry);
    let log = log_extent(superblock, &geometry, ag);
    let free = free_extents(&geometry, &layout, log, ag);
    let mut blocks = headers(superblock, &geometry, &layout, &free, ag);
    for (kind, block) in &layout.roots {
        let records = match kind {
            TreeKind::Bnobt => free_records(&free),
            TreeKind::Cntbt => {
                let mut by_size = free.clone();
                by_size.sort_by_key(|extent| (extent.length, extent.start));
                free_records(&by_size)
            }
            TreeKind::Rmapbt => rmap_records(&geometry, &layout, log),
            _ => Records { bytes: Vec::new(), count: 0 },
        };
        blocks.push(root_block(&geometry, ag, *kind, *block, &records));
    }
    blocks
}

/// The superblock as group `ag` gets it: the planned one in group 0, elsewhere a copy that knows
/// the root directory only in the last and in the middle group (format reference, section 2.6).
fn superblock_copy(superblock: &Superblock, ag: AgNumber) -> Superblock {
    let mut copy = superblock.clone();
    if ag.0 != 0 {
        let last = superblock.ag_count - 1;
        if ag.0 != last && ag.0 != last / 2 {
            copy.root_inode = InodeNumber::NULL;
        }
        copy.rt_bitmap_inode = InodeNumber::NULL;
        copy.rt_summary_inode = InodeNumber::NULL;
    }
    copy
}

fn headers(
    superblock: &Superblock,
    geometry: &Geometry,
    layout: &StaticLayout,
    free: &[Extent],
    ag: AgNumber,
) -> Vec<StaticBlock> {
    let length = geometry.ag_length(ag);
    let (rmap, reflink) = (geometry.features.rmapbt(), geometry.features.reflink());
    let agf = Agf {
        ag,
        length,
        bnobt: layout.root(TreeKind::Bnobt),
        cntbt: layout.root(TreeKind::Cntbt),
        rmapbt: layout.root(TreeKind::Rmapbt),
        refcountbt: layout.root(TreeKind::Refcountbt),
        free_list_first: agfl::EMPTY_FIRST,
        free_list_last: agfl::EMPTY_LAST,
        free_list_count: 0,
        free_blocks: free.iter().map(|extent| extent.length).sum(),
        longest: free.iter().map(|extent| extent.length).max().unwrap_or(0),
        tree_blocks: 0,
        rmap_blocks: u32::from(rmap),
        refcount_blocks: u32::from(reflink),
    };
    let counted = geometry.features.inobtcnt();
    let agi = Agi {
        ag,
        length,
        count: 0,
        inobt: layout.root(TreeKind::Inobt),
        free_count: 0,
        newest: AgInode::NULL,
        unlinked: [AgInode::NULL; agi::UNLINKED_LISTS],
        finobt: layout.root(TreeKind::Finobt),
        inobt_blocks: u32::from(counted),
        finobt_blocks: u32::from(counted && geometry.features.finobt()),
    };
    let mut bytes = [(); 4].map(|()| vec![0; geometry.sector_size()]);
    superblock_copy(superblock, ag).encode(&mut bytes[0]);
    agf.encode(geometry, &mut bytes[1]);
    agi.encode(geometry, &mut bytes[2]);
    agfl::encode_empty(&mut bytes[3], geometry, ag);
    let kinds = [BufferKind::Superblock, BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
    (0..)
        .zip(kinds)
        .zip(bytes)
        .map(|((index, kind), bytes)| StaticBlock {
            sector: geometry.header_sector(ag, index),
            kind,
            bytes,
        })
        .collect()
}

/// The log, if it is in this group.
fn log_extent(superblock: &Superblock, geometry: &Geometry, ag: AgNumber) -> Option<Extent> {
    let (group, start) = geometry.split_block(superblock.log_start);
    (group == ag).then_some(Extent { start: start.0, length: superblock.log_blocks })
}

/// What is free behind the roots, before and behind the log.
fn free_extents(
    geometry: &Geometry,
    layout: &StaticLayout,
    log: Option<Extent>,
    ag: AgNumber,
) -> Vec<Extent> {
    let end = geometry.ag_length(ag);
    let used = log.unwrap_or(Extent { start: layout.blocks, length: 0 });
    [(layout.blocks, used.start), (used.start + used.length, end)]
        .into_iter()
        .filter(|(start, end)| start < end)
        .map(|(start, end)| Extent { start, length: end - start })
        .collect()
}

/// The records of a root that is a leaf.
struct Records {
    bytes: Vec<u8>,
    count: u16,
}

fn free_records(free: &[Extent]) -> Records {
    let mut bytes = Vec::new();
    for extent in free {
        bytes.extend_from_slice(&extent.start.to_be_bytes());
        bytes.extend_from_slice(&extent.length.to_be_bytes());
    }
    Records { bytes, count: free.len() as u16 }
}

/// Owners of the static blocks and of the log, neighbours of one owner merged.
fn rmap_records(geometry: &Geometry, layout: &StaticLayout, log: Option<Extent>) -> Records {
    let headers = Extent { start: 0, length: geometry.ag_header_blocks() };
    let roots = layout.roots.iter().map(|(kind, block)| {
        let owner = match kind {
            TreeKind::Inobt | TreeKind::Finobt => OWNER_INODE_TREES,
            TreeKind::Refcountbt => OWNER_REFCOUNT,
            _ => OWNER_GROUP,
        };
        (Extent { start: block.0, length: 1 }, owner)
    });
    let log = log.map(|extent| (extent, OWNER_LOG));
    let mut records: Vec<(Extent, u64)> = vec![(headers, OWNER_HEADERS)];
    for (extent, owner) in roots.chain(log) {
        match records.last_mut() {
            Some((last, same)) if *same == owner && last.start + last.length == extent.start => {
                last.length += extent.length;
            }
            _ => records.push((extent, owner)),
        }
    }
    let mut bytes = Vec::new();
    for (extent, owner) in &records {
        bytes.extend_from_slice(&extent.start.to_be_bytes());
        bytes.extend_from_slice(&extent.length.to_be_bytes());
        bytes.extend_from_slice(&owner.to_be_bytes());
        bytes.extend_from_slice(&0_u64.to_be_bytes());
    }
    Records { bytes, count: records.len() as u16 }
}

fn root_block(
    geometry: &Geometry,
    ag: AgNumber,
    kind: TreeKind,
    block: AgBlock,
    records: &Records,
) -> StaticBlock {
    let sector = geometry.ag_sector(ag, block);
    let mut bytes = vec![0; geometry.block_size()];
    put_be32(&mut bytes, 0, kind.magic_v5());
    put_be16(&mut bytes, 6, records.count);
    put_be32(&mut bytes, 8, AgBlock::NULL.0);
    put_be32(&mut bytes, 12, AgBlock::NULL.0);
    put_be64(&mut bytes, 16, sector.0);
    bytes[32..48].copy_from_slice(geometry.meta_uuid.as_bytes());
    put_be32(&mut bytes, 48, ag.0);
    bytes[SHORT_HEADER..SHORT_HEADER + records.bytes.len()].copy_from_slice(&records.bytes);
    StaticBlock { sector, kind: BufferKind::Tree(kind), bytes }
}
