//! The blocks every allocation group starts with (docs/format/new-volumes.md#static-blocks).

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
    /// Its place.
    pub sector: Sector,
    /// Its kind.
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
    /// Least length of the free list while all trees have one level
    /// (docs/format/groups.md#fill-level).
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
/// All space behind them is in the free-space trees; the caller writes them, then fills the free
/// lists (at least two blocks for each of bnobt, cntbt and rmapbt) and makes the first inodes.
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
/// the root directory only in the last and in the middle group (docs/format/superblock.md#copies).
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

/// The free extents behind the roots, before and behind the log.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{be16, be32};
    use crate::format::checksum;
    use crate::mkfs::{Feature, MkfsOptions, plan};
    use uuid::Uuid;

    fn gigabyte(features: &[(Feature, bool)]) -> Superblock {
        let mut options = MkfsOptions::new(1 << 30, Uuid::from_u128(7));
        options.features = features.to_vec();
        plan(&options).unwrap()
    }

    fn block(superblock: &Superblock, ag: u32, kind: BufferKind) -> StaticBlock {
        let blocks = ag_static(superblock, AgNumber(ag));
        blocks.into_iter().find(|block| block.kind == kind).unwrap()
    }

    fn records(superblock: &Superblock, ag: u32, kind: TreeKind, size: usize) -> Vec<Vec<u8>> {
        let block = block(superblock, ag, BufferKind::Tree(kind)).bytes;
        let end = SHORT_HEADER + usize::from(be16(&block, 6)) * size;
        block[SHORT_HEADER..end].chunks(size).map(<[u8]>::to_vec).collect()
    }

    fn free(superblock: &Superblock, ag: u32, kind: TreeKind) -> Vec<(u32, u32)> {
        let records = records(superblock, ag, kind, 8);
        records.iter().map(|record| (be32(record, 0), be32(record, 4))).collect()
    }

    fn owners(superblock: &Superblock, ag: u32) -> Vec<(u32, u32, i64)> {
        let owner = |record: &[u8]| crate::bytes::be64(record, 8) as i64;
        let records = records(superblock, ag, TreeKind::Rmapbt, 24);
        records.iter().map(|record| (be32(record, 0), be32(record, 4), owner(record))).collect()
    }

    /// The example of docs/format/new-volumes.md#example, before free lists (6 blocks) and the
    /// first inodes (8).
    #[test]
    fn groups_of_a_gigabyte() {
        let superblock = gigabyte(&[]);
        assert_eq!(superblock.log_start.0, 131_079);
        assert_eq!(superblock.log_blocks, 16_384);
        assert_eq!(superblock.root_inode.0, 128);
        assert_eq!(superblock.free_blocks, 245_724 + 8);
        assert_eq!(free(&superblock, 0, TreeKind::Bnobt), [(7, 65_515 + 6 + 8)]);
        assert_eq!(free(&superblock, 3, TreeKind::Cntbt), [(7, 65_523 + 6)]);
        assert_eq!(free(&superblock, 2, TreeKind::Bnobt), [(16_391, 49_139 + 6)]);
        let roots = [(0, 1, -3), (1, 2, -5), (3, 2, -6), (5, 1, -5), (6, 1, -8)];
        assert_eq!(owners(&superblock, 1), roots);
        assert_eq!(owners(&superblock, 2), [&roots[..], &[(7, 16_384, -4)]].concat());
        for ag in 0..4 {
            assert!(records(&superblock, ag, TreeKind::Inobt, 16).is_empty());
            assert_eq!(free(&superblock, ag, TreeKind::Bnobt).len(), 1);
        }
        let geometry = superblock.geometry();
        let agf = Agf::decode(&block(&superblock, 2, BufferKind::Agf).bytes, &geometry);
        assert_eq!((agf.free_blocks, agf.longest, agf.length), (49_145, 49_145, 65_536));
        assert_eq!((agf.free_list_first, agf.free_list_last, agf.free_list_count), (1, 0, 0));
        assert_eq!((agf.tree_blocks, agf.rmap_blocks, agf.refcount_blocks), (0, 1, 1));
        let root = block(&superblock, 0, BufferKind::Tree(TreeKind::Bnobt));
        assert_eq!(root.sector, Sector(8));
        assert_eq!(root.bytes[..16], *b"AB3B\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff");
    }

    #[test]
    fn without_reverse_mappings_and_shared_blocks() {
        let none = [(Feature::Rmapbt, false), (Feature::Reflink, false)];
        let superblock = gigabyte(&none);
        assert_eq!(free(&superblock, 0, TreeKind::Bnobt), [(5, 65_531)]);
        let no_finobt = [(Feature::Finobt, false), (Feature::Inobtcount, false)];
        let superblock = gigabyte(&no_finobt);
        let roots = [(0, 1, -3), (1, 2, -5), (3, 1, -6), (4, 1, -5), (5, 1, -8)];
        assert_eq!(owners(&superblock, 0), roots);
    }

    #[test]
    fn an_aligned_log_leaves_a_gap_in_both_orders() {
        let mut options = MkfsOptions::new(1 << 30, Uuid::nil());
        options.log_stripe_unit = Some(256 << 10);
        let superblock = plan(&options).unwrap();
        let behind = (64 + 16_384, 65_536 - 64 - 16_384);
        assert_eq!(free(&superblock, 2, TreeKind::Bnobt), [(7, 57), behind]);
        assert_eq!(free(&superblock, 2, TreeKind::Cntbt), [(7, 57), behind]);
    }

    #[test]
    fn headers_pass_their_verifiers() {
        let superblock = gigabyte(&[]);
        let geometry = superblock.geometry();
        for ag in (0..4).map(AgNumber) {
            for mut block in ag_static(&superblock, ag) {
                match block.kind {
                    BufferKind::Agf => Agf::verify(&block.bytes, &geometry, ag).unwrap(),
                    BufferKind::Agi => Agi::verify(&block.bytes, &geometry, ag).unwrap(),
                    BufferKind::Agfl => agfl::verify(&block.bytes, &geometry, ag).unwrap(),
                    BufferKind::Superblock => {
                        checksum::stamp(&mut block.bytes, crate::format::superblock::CRC_OFFSET);
                        let copy = Superblock::decode(&block.bytes).unwrap();
                        assert!(copy.in_progress);
                        assert_eq!(copy.root_inode.is_null(), ag.0 == 2);
                        assert_eq!(copy.rt_bitmap_inode.is_null(), ag.0 != 0);
                    }
                    _ => assert_eq!(block.bytes.len(), 4096),
                }
            }
        }
    }
}
