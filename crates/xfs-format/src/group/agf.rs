//! Free-space header of an allocation group (docs/format/groups.md#agf).
//!
//! The bytes are verified by [`Agf::verify`] when they are read and before they are written;
//! [`Agf::decode`] takes verified bytes. Checksum and LSN are stamped by the writer of the buffer.

use super::free_list_slots::slots;
use super::header::{
    HeaderError, TreeRoot, check_identity, check_range, check_root, store_changes, tree_root,
};
use crate::btree::TreeHeights;
use crate::bytes::{Changes, EditBytes, be32, put_be32};
use crate::geometry::Geometry;
use crate::units::AgNumber;

const MAGIC: u32 = u32::from_be_bytes(*b"XAGF");
const UUID_OFFSET: usize = 64;

/// Free-space header of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agf {
    /// The group.
    pub ag: AgNumber,
    /// Blocks of the group.
    pub length: u32,
    /// Free space by block.
    pub bnobt: TreeRoot,
    /// Free space by size.
    pub cntbt: TreeRoot,
    /// Reverse mappings; zero without the feature.
    pub rmapbt: TreeRoot,
    /// Reference counts; zero without the feature.
    pub refcountbt: TreeRoot,
    /// First live slot of the free list.
    pub free_list_first: u32,
    /// Last live slot of the free list.
    pub free_list_last: u32,
    /// Live slots of the free list.
    pub free_list_count: u32,
    /// Free blocks in the trees; those of the free list are not among them.
    pub free_blocks: u32,
    /// Length of the longest free extent.
    pub longest: u32,
    /// Blocks of bnobt, cntbt and rmapbt without their roots.
    pub tree_blocks: u32,
    /// Blocks of the rmapbt with its root.
    pub rmap_blocks: u32,
    /// Blocks of the refcountbt with its root.
    pub refcount_blocks: u32,
}

impl Agf {
    /// Checks everything but the checksum.
    ///
    /// # Errors
    ///
    /// The first field that breaks a rule.
    pub fn verify(bytes: &[u8], geometry: &Geometry, ag: AgNumber) -> Result<(), HeaderError> {
        check_identity(bytes, (MAGIC, UUID_OFFSET), geometry, ag)?;
        let agf = Self::decode(bytes, geometry);
        let heights = TreeHeights::new(geometry);
        check_root(("bno_root", "bno_level"), agf.bnobt, heights.alloc, geometry, ag)?;
        check_root(("cnt_root", "cnt_level"), agf.cntbt, heights.alloc, geometry, ag)?;
        if geometry.features.rmapbt() {
            check_root(("rmap_root", "rmap_level"), agf.rmapbt, heights.rmap, geometry, ag)?;
            check_range("rmap_blocks", agf.rmap_blocks, 1, agf.length)?;
        }
        if geometry.features.reflink() {
            let names = ("refcount_root", "refcount_level");
            check_root(names, agf.refcountbt, heights.refcount, geometry, ag)?;
            check_range("refcount_blocks", agf.refcount_blocks, 1, agf.length)?;
        }
        check_range("freeblks", agf.free_blocks, 0, agf.length)?;
        check_range("longest", agf.longest, 0, agf.free_blocks)?;
        check_range("btreeblks", agf.tree_blocks, 0, agf.length)?;
        let slots = slots(geometry);
        check_range("flfirst", agf.free_list_first, 0, slots - 1)?;
        check_range("fllast", agf.free_list_last, 0, slots - 1)?;
        check_range("flcount", agf.free_list_count, 0, slots)
    }

    /// Reads verified bytes.
    #[must_use]
    pub fn decode(bytes: &[u8], geometry: &Geometry) -> Self {
        let root = |block, levels| tree_root(bytes, block, levels);
        let (rmap, reflink) = (geometry.features.rmapbt(), geometry.features.reflink());
        Self {
            ag: AgNumber(be32(bytes, 8)),
            length: be32(bytes, 12),
            bnobt: root(16, 28),
            cntbt: root(20, 32),
            rmapbt: if rmap { root(24, 36) } else { TreeRoot::default() },
            refcountbt: if reflink { root(88, 92) } else { TreeRoot::default() },
            free_list_first: be32(bytes, 40),
            free_list_last: be32(bytes, 44),
            free_list_count: be32(bytes, 48),
            free_blocks: be32(bytes, 52),
            longest: be32(bytes, 56),
            tree_blocks: be32(bytes, 60),
            rmap_blocks: if rmap { be32(bytes, 80) } else { 0 },
            refcount_blocks: if reflink { be32(bytes, 84) } else { 0 },
        }
    }

    /// Makes `bytes`, one sector, the header of a new v5 group; LSN and checksum stay zero.
    pub fn encode(&self, geometry: &Geometry, bytes: &mut [u8]) {
        bytes.fill(0);
        put_be32(bytes, 0, MAGIC);
        put_be32(bytes, 4, 1);
        bytes[UUID_OFFSET..UUID_OFFSET + 16].copy_from_slice(geometry.meta_uuid.as_bytes());
        self.encode_changes(&mut EditBytes::new(bytes, &mut Changes::default()));
    }

    /// Brings the bytes of a v5 header up to date; only fields that differ are written.
    pub fn encode_changes(&self, edit: &mut EditBytes<'_>) {
        let words = [
            (8, self.ag.0),
            (12, self.length),
            (16, self.bnobt.block.0),
            (20, self.cntbt.block.0),
            (24, self.rmapbt.block.0),
            (28, self.bnobt.levels),
            (32, self.cntbt.levels),
            (36, self.rmapbt.levels),
            (40, self.free_list_first),
            (44, self.free_list_last),
            (48, self.free_list_count),
            (52, self.free_blocks),
            (56, self.longest),
            (60, self.tree_blocks),
            (80, self.rmap_blocks),
            (84, self.refcount_blocks),
            (88, self.refcountbt.block.0),
            (92, self.refcountbt.levels),
        ];
        store_changes(edit, words.into_iter());
    }
}
