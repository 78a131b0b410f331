//! Log space that the kernel reserves for each kind of transaction
//! (docs/format/journal/reservations.md#transactions). The largest decides the least log size that
//! the kernel mounts.

use crate::format::{Incompat, TreeHeights};
use crate::geometry::Geometry;

/// Log space of one kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    /// Name of the kind, as `xfs_db -c logres` prints it.
    pub(crate) name: &'static str,
    /// Bytes of log items, without headers of records.
    pub(crate) bytes: u64,
    /// How many in a row are reserved for a chain of such transactions.
    pub(crate) count: u64,
}

const INODE_FORMAT_AND_CORE: u64 = 4 * 12 + 56 + 144;
const BUFFER_OVERHEAD: u64 = 128;
const DQUOTS: u64 = 768;
/// Intent that adds a parent pointer, and one that replaces it.
const PARENT_SET: u64 = 40 + 12 + 256;
const PARENT_REPLACE: u64 = 40 + 2 * 12 + 2 * 256;
/// Height that older kernels assumed for the reverse-mapping tree of volumes with shared blocks.
const HISTORIC_RMAP_HEIGHT: u64 = 9;
/// Transactions in a chain that older kernels reserved with shared blocks.
const HISTORIC_REFLINK_COUNT: u64 = 8;

/// The quantities the formulas are made of; one letter or word each as in the reference.
struct Terms {
    block: u64,
    sector: u64,
    inode: u64,
    cluster: u64,
    dir_block: u64,
    chunk_blocks: u64,
    alloc: u64,
    rmap: u64,
    refcount: u64,
    inobt: u64,
    bmap_data: u64,
    bmap_attr: u64,
    finobt: bool,
    reflink: bool,
    parent: bool,
    /// Mappings that one bmap block covers at least.
    bmap_spread: u64,
    /// Space of one chain of directory changes, in blocks.
    dir_change: u64,
    dir_bmap: u64,
}

impl Terms {
    fn new(geometry: &Geometry) -> Self {
        let heights = TreeHeights::new(geometry);
        let features = &geometry.features;
        let parent = features.incompat.contains(Incompat::PARENT);
        let block = 1_u64 << geometry.block_log;
        let pairs = (block - 56) / 8;
        let bmap_spread = pairs - pairs / 2;
        let bmap_data = u64::from(heights.bmap_data);
        let dir_blocks = u64::from(geometry.dir_block_blocks());
        let dir_bmap = dir_blocks.div_ceil(bmap_spread) * (bmap_data - 1);
        let historic_rmap = !parent && features.rmapbt() && features.reflink();
        Self {
            block,
            sector: 1 << geometry.sector_log,
            inode: 1 << geometry.inode_log,
            cluster: u64::from(geometry.cluster_blocks()) << geometry.block_log,
            dir_block: dir_blocks << geometry.block_log,
            chunk_blocks: geometry.chunk_blocks().into(),
            alloc: heights.alloc.into(),
            rmap: if historic_rmap { HISTORIC_RMAP_HEIGHT } else { heights.rmap.into() },
            refcount: heights.refcount.into(),
            inobt: heights.inode.into(),
            bmap_data,
            bmap_attr: heights.bmap_attr.into(),
            finobt: features.finobt(),
            reflink: features.reflink(),
            parent,
            bmap_spread,
            dir_change: 7 * dir_blocks + 7 * dir_bmap + 1,
            dir_bmap,
        }
    }

    fn buffers(count: u64, size: u64) -> u64 {
        count * (size + BUFFER_OVERHEAD)
    }

    fn blocks(&self, count: u64) -> u64 {
        Self::buffers(count, self.block)
    }

    fn sectors(&self, count: u64) -> u64 {
        Self::buffers(count, self.sector)
    }

    fn inodes(&self, count: u64) -> u64 {
        count * (INODE_FORMAT_AND_CORE + self.inode)
    }

    /// Blocks of the space trees that `extents` allocations or frees change.
    fn space(&self, extents: u64) -> u64 {
        let rmap = if self.rmap > 0 { 2 * self.rmap - 1 } else { 0 };
        extents * (2 * (2 * self.alloc - 1) + rmap)
    }

    /// Freeing `extents` extents.
    fn free(&self, extents: u64) -> u64 {
        self.sectors(2 * extents + 1) + self.blocks(self.space(extents))
    }

    /// Blocks of the reference count tree that `extents` updates change.
    fn refcount_blocks(&self, extents: u64) -> u64 {
        if self.reflink { extents * (2 * self.refcount - 1) } else { 0 }
    }

    /// Updating the reference counts of `extents` extents.
    fn refcount(&self, extents: u64) -> u64 {
        if self.reflink {
            self.sectors(extents) + self.blocks(self.refcount_blocks(extents))
        } else {
            0
        }
    }

    fn inobt(&self) -> u64 {
        self.blocks(self.inobt) + self.blocks(self.space(1))
    }

    fn finobt(&self) -> u64 {
        if self.finobt { self.inobt() } else { 0 }
    }

    fn with_parent(&self, bytes: u64) -> u64 {
        if self.parent { bytes } else { 0 }
    }

    /// Chunk allocation in the create family.
    fn inode_chunk(&self) -> u64 {
        self.sectors(2) + self.sector + self.blocks(self.space(1)) + self.inobt() + self.finobt()
    }

    fn attr_set(&self) -> u64 {
        DQUOTS + self.inodes(1) + self.sectors(1) + self.blocks(5)
    }

    fn attr_set_per_block(&self) -> u64 {
        self.sectors(1) + self.blocks(self.bmap_attr)
    }

    fn attr_remove(&self) -> u64 {
        let leaf = self.inodes(1)
            + self.blocks(5)
            + self.block * self.bmap_attr
            + Self::buffers(self.bmap_data, 0);
        DQUOTS + leaf.max(self.sectors(5) + self.blocks(self.space(2)))
    }

    /// Write and truncate with the sizes and counts of this volume's kernel.
    fn write(&self) -> (u64, u64) {
        let map = self.inodes(1)
            + self.blocks(self.bmap_data)
            + self.sectors(3)
            + self.blocks(self.space(2));
        let free = self.sectors(5) + self.blocks(self.space(2));
        let truncate_map = self.inodes(1) + self.blocks(self.bmap_data + 1);
        if self.parent {
            let write = DQUOTS + map.max(free).max(self.refcount(1));
            let truncate = DQUOTS + truncate_map.max(self.free(4)).max(self.refcount(2));
            (write, truncate)
        } else {
            // Older kernels logged reference count updates in the same transaction.
            let write = DQUOTS + map.max(free) + self.blocks(self.refcount_blocks(2));
            let free = self.free(4) + self.blocks(self.refcount_blocks(4));
            (write, DQUOTS + truncate_map.max(free))
        }
    }

    fn write_count(&self) -> u64 {
        if self.reflink && !self.parent {
            return HISTORIC_REFLINK_COUNT;
        }
        let (reflink, rmap) = (u64::from(self.reflink), u64::from(self.rmap > 0));
        2 + reflink.max(rmap) + reflink + rmap
    }

    fn create(&self) -> u64 {
        let entry = self.inodes(2)
            + self.sectors(1)
            + self.block
            + self.blocks(self.dir_change)
            + self.finobt();
        let parent = self.with_parent(self.attr_set());
        DQUOTS + self.with_parent(PARENT_SET) + self.inode_chunk().max(entry).max(parent)
    }

    /// Link and remove: they differ in the buffers of unlinked lists, frees and attributes.
    fn unlinked_change(&self, clusters: u64, frees: u64, attributes: u64) -> u64 {
        let entry = self.inodes(2) + self.blocks(self.dir_change);
        DQUOTS
            + self.sectors(1)
            + clusters * self.cluster
            + self.with_parent(PARENT_SET)
            + entry.max(self.free(frees)).max(self.with_parent(attributes))
    }

    fn rename(&self) -> u64 {
        let entry = self.inodes(5) + self.blocks(2 * self.dir_change);
        let parent = (PARENT_REPLACE + 2 * PARENT_SET).max(2 * PARENT_REPLACE);
        let attributes = self.attr_set().max(self.attr_remove());
        DQUOTS
            + self.with_parent(parent)
            + entry.max(self.free(3)).max(self.with_parent(attributes))
    }

    fn inode_free(&self) -> u64 {
        DQUOTS
            + self.inodes(1)
            + self.sectors(3)
            + self.sectors(1)
            + 2 * self.cluster
            + self.blocks(self.space(1))
            + Self::buffers(self.chunk_blocks, 0)
            + self.inobt()
            + self.finobt()
    }
}

/// Reservations of every kind of transaction, with the numbers by which the kernel judges the size
/// of the log: without parent pointers those of older kernels, so that they can still mount the
/// volume (docs/format/journal/reservations.md#least-length).
#[must_use]
pub(crate) fn reservations(geometry: &Geometry) -> Vec<Reservation> {
    let terms = Terms::new(geometry);
    let chain = if terms.parent { 3 } else { 0 };
    let (write, truncate) = terms.write();
    let writes = terms.write_count();
    let create = terms.create();
    let orphan = terms.sectors(1) + terms.cluster;
    let (attr_set, attr_remove) = (terms.attr_set(), terms.attr_remove());
    let attr_free = terms.sectors(9) + terms.blocks(terms.space(4));
    let add_fork = terms.inodes(1)
        + terms.sectors(2)
        + Terms::buffers(1, terms.dir_block)
        + terms.blocks(terms.dir_bmap + 1)
        + terms.blocks(terms.space(1));
    [
        ("write", write, writes),
        ("itruncate", truncate, writes),
        ("rename", terms.rename(), 2 + chain),
        ("link", terms.unlinked_change(2, 1, attr_set), 2 + chain),
        ("remove", terms.unlinked_change(1, 2, attr_remove), 2 + chain),
        ("symlink", create + Terms::buffers(1, 1024), 3 + chain),
        ("create", create, 2 + chain),
        ("create_tmpfile", DQUOTS + terms.inode_chunk() + orphan, 2),
        ("mkdir", create, 3 + chain),
        ("ifree", terms.inode_free(), 2),
        ("ichange", DQUOTS + terms.inodes(1) + terms.sectors(1), 1),
        ("growdata", terms.sectors(3) + terms.blocks(terms.space(1)), 2),
        ("addafork", DQUOTS + add_fork, 2),
        ("attrinval", attr_free.max(terms.inodes(1) + terms.blocks(terms.bmap_attr)), 1),
        ("attrsetm", attr_set, 3),
        ("attrrm", attr_remove, 3),
        ("qm_dqalloc", write + Terms::buffers(1, terms.block - 1), writes),
    ]
    .map(|(name, bytes, count)| Reservation { name, bytes, count })
    .to_vec()
}

/// The kind of an operation, for its share of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A new inode under a new name.
    Create,
    /// A further name.
    Link,
    /// A name less, and perhaps its inode.
    Remove,
    /// A name moves, and perhaps replaces another.
    Rename,
    /// An attribute, and perhaps the fork for it.
    Attribute,
    /// Fields of an inode, and perhaps the access list that follows them.
    Metadata,
}

/// Log space of single transactions and of the longest chain, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogSpace {
    /// Of the longest chain of transactions that a kernel makes of one operation.
    pub(crate) longest: usize,
    works: [usize; 6],
}

impl LogSpace {
    /// The space on a volume; nothing may take more than `limit`.
    pub(crate) fn new(geometry: &Geometry, limit: usize) -> Self {
        let kinds = reservations(geometry);
        let longest = kinds.iter().map(|kind| kind.bytes * kind.count).max();
        let within = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(limit);
        let sum = |names: &[&str]| {
            let parts = kinds.iter().filter(|kind| names.contains(&kind.name));
            within(parts.map(|kind| kind.bytes).sum())
        };
        Self {
            longest: within(longest.unwrap_or(0)),
            works: [
                sum(&["symlink", "attrsetm"]),
                sum(&["link", "attrsetm"]),
                sum(&["remove", "attrrm", "ifree"]),
                sum(&["rename", "attrsetm", "attrrm", "ifree"]),
                sum(&["addafork", "attrsetm", "attrrm"]),
                sum(&["ichange", "attrsetm"]),
            ],
        }
    }

    /// What the transactions have together that a kernel makes of such work, without those for
    /// blocks that few operations give back.
    pub(crate) const fn of(&self, work: Work) -> usize {
        self.works[work as usize]
    }
}

/// Setting the largest attribute that still fits a leaf, with every block it may need.
#[must_use]
pub(crate) fn large_attribute(geometry: &Geometry) -> Reservation {
    let terms = Terms::new(geometry);
    let size = terms.block / 2 + terms.block / 4 - 257;
    let blocks = size.div_ceil(terms.block);
    // Older kernels took bytes for blocks here.
    let mapped = if terms.parent { blocks } else { size };
    let levels = terms.bmap_attr - 1;
    let count = 5
        + 5 * 1_u64.div_ceil(terms.bmap_spread) * levels
        + blocks
        + mapped.div_ceil(terms.bmap_spread) * levels;
    let bytes = terms.attr_set() + terms.attr_set_per_block() * count;
    Reservation { name: "largest attribute", bytes, count: 3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{Feature, MkfsOptions, Preset, plan};
    use uuid::Uuid;

    fn of(size: u64) -> Vec<(&'static str, u64, u64)> {
        let superblock = plan(&MkfsOptions::new(size, Uuid::nil())).unwrap();
        let kinds = reservations(&superblock.geometry());
        kinds.into_iter().map(|kind| (kind.name, kind.bytes, kind.count)).collect()
    }

    /// Printed by `xfs_db -c logres` for a volume of 300 MiB.
    #[test]
    fn reverse_mapping_alone_makes_chains_longer() {
        let options = MkfsOptions {
            preset: Preset::Linux4_19,
            features: vec![(Feature::Rmapbt, true)],
            ..MkfsOptions::new(300 << 20, Uuid::nil())
        };
        let kinds = reservations(&plan(&options).unwrap().geometry());
        let find = |name| kinds.iter().find(|kind| kind.name == name).unwrap();
        let (write, truncate) = (find("write"), find("itruncate"));
        assert_eq!((write.bytes, write.count), (117_496, 4));
        assert_eq!((truncate.bytes, truncate.count), (192_384, 4));
    }

    /// Printed by `xfs_db -c logres` (docs/format/journal/reservations.md#examples).
    #[test]
    fn reservations_match_the_worked_values() {
        let small = of(1 << 30);
        for expected in [
            ("write", 142_840, 5),
            ("itruncate", 226_176, 5),
            ("rename", 428_160, 5),
            ("link", 247_204, 5),
            ("remove", 230_820, 5),
            ("create", 281_892, 5),
            ("mkdir", 281_892, 6),
            ("symlink", 283_044, 6),
            ("create_tmpfile", 201_216, 2),
            ("ifree", 219_512, 2),
            ("attrsetm", 23_288, 3),
            ("attrrm", 113_792, 3),
            ("ichange", 2168, 1),
            ("growdata", 56_832, 2),
            ("addafork", 91_512, 2),
        ] {
            assert!(small.contains(&expected), "{expected:?} not in {small:?}");
        }
        let large = of(100 << 30);
        for expected in [
            ("write", 193_528, 5),
            ("itruncate", 327_552, 5),
            ("create", 311_460, 5),
            ("create_tmpfile", 285_696, 2),
            ("ifree", 303_992, 2),
            ("attrrm", 164_480, 3),
            ("addafork", 116_856, 2),
        ] {
            assert!(large.contains(&expected), "{expected:?} not in {large:?}");
        }
    }
}
