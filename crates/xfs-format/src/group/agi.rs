//! Inode header of an allocation group (docs/format/groups.md#agi).
//!
//! The bytes are verified by [`Agi::verify`] when they are read and before they are written;
//! [`Agi::decode`] takes verified bytes. Checksum and LSN are stamped by the writer of the buffer.

use super::header::{
    HeaderError, TreeRoot, check_identity, check_range, check_root, store_changes, tree_root,
};
use crate::btree::TreeHeights;
use crate::bytes::{Changes, EditBytes, be32, put_be32};
use crate::geometry::Geometry;
use crate::units::{AgInode, AgNumber};

/// Offset of the checksum on v5 volumes.
pub const CRC_OFFSET: usize = 312;
/// Heads of lists of unlinked inodes; an inode is on list `inode % UNLINKED_LISTS`.
pub const UNLINKED_LISTS: usize = 64;

const MAGIC: u32 = u32::from_be_bytes(*b"XAGI");
const UNLINKED_OFFSET: usize = 40;
const UUID_OFFSET: usize = 296;

/// Inode header of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agi {
    /// The group.
    pub ag: AgNumber,
    /// Blocks of the group.
    pub length: u32,
    /// Inodes that exist on disk.
    pub count: u32,
    /// Inode chunks.
    pub inobt: TreeRoot,
    /// Free inodes; those of holes do not count.
    pub free_count: u32,
    /// First inode of the newest chunk, a hint; null if none.
    pub newest: AgInode,
    /// Heads of the lists of unlinked inodes; null where empty.
    pub unlinked: [AgInode; UNLINKED_LISTS],
    /// Inode chunks with a free inode; zero without the feature.
    pub finobt: TreeRoot,
    /// Blocks of the inobt; zero without the feature that counts them.
    pub inobt_blocks: u32,
    /// Blocks of the finobt; zero without the feature that counts them.
    pub finobt_blocks: u32,
}

impl Agi {
    /// Checks everything but the checksum.
    ///
    /// # Errors
    ///
    /// The first field that breaks a rule.
    pub fn verify(bytes: &[u8], geometry: &Geometry, ag: AgNumber) -> Result<(), HeaderError> {
        check_identity(bytes, (MAGIC, UUID_OFFSET), geometry, ag)?;
        let agi = Self::decode(bytes, geometry);
        let heights = TreeHeights::new(geometry);
        check_root(("root", "level"), agi.inobt, heights.inode, geometry, ag)?;
        if geometry.features.finobt() {
            let names = ("free_root", "free_level");
            check_root(names, agi.finobt, heights.inode, geometry, ag)?;
        }
        if geometry.features.inobtcnt() {
            check_range("iblocks", agi.inobt_blocks, 1, agi.length)?;
            if geometry.features.finobt() {
                check_range("fblocks", agi.finobt_blocks, 1, agi.length)?;
            }
        }
        check_range("freecount", agi.free_count, 0, agi.count)?;
        for head in agi.unlinked {
            if !head.is_null() && !geometry.valid_inode(geometry.inode_number(ag, head)) {
                let max = u64::from(agi.length) << geometry.inodes_per_block_log();
                return Err(HeaderError::Range {
                    field: "unlinked",
                    found: head.0.into(),
                    min: 1,
                    max: max - 1,
                });
            }
        }
        Ok(())
    }

    /// Reads verified bytes.
    #[must_use]
    pub fn decode(bytes: &[u8], geometry: &Geometry) -> Self {
        let root = |block, levels| tree_root(bytes, block, levels);
        let (finobt, counted) = (geometry.features.finobt(), geometry.features.inobtcnt());
        Self {
            ag: AgNumber(be32(bytes, 8)),
            length: be32(bytes, 12),
            count: be32(bytes, 16),
            inobt: root(20, 24),
            free_count: be32(bytes, 28),
            newest: AgInode(be32(bytes, 32)),
            unlinked: std::array::from_fn(|list| AgInode(be32(bytes, UNLINKED_OFFSET + 4 * list))),
            finobt: if finobt { root(328, 332) } else { TreeRoot::default() },
            inobt_blocks: if counted { be32(bytes, 336) } else { 0 },
            finobt_blocks: if counted { be32(bytes, 340) } else { 0 },
        }
    }

    /// Makes `bytes`, one sector, the header of a new v5 group; LSN and checksum stay zero.
    pub fn encode(&self, geometry: &Geometry, bytes: &mut [u8]) {
        bytes.fill(0);
        put_be32(bytes, 0, MAGIC);
        put_be32(bytes, 4, 1);
        put_be32(bytes, 36, AgInode::NULL.0);
        bytes[UUID_OFFSET..UUID_OFFSET + 16].copy_from_slice(geometry.meta_uuid.as_bytes());
        self.encode_changes(&mut EditBytes::new(bytes, &mut Changes::default()));
    }

    /// Brings the bytes of a v5 header up to date; only fields that differ are written.
    pub fn encode_changes(&self, edit: &mut EditBytes<'_>) {
        let words = [
            (8, self.ag.0),
            (12, self.length),
            (16, self.count),
            (20, self.inobt.block.0),
            (24, self.inobt.levels),
            (28, self.free_count),
            (32, self.newest.0),
            (328, self.finobt.block.0),
            (332, self.finobt.levels),
            (336, self.inobt_blocks),
            (340, self.finobt_blocks),
        ];
        store_changes(edit, words.into_iter());
        // Few transactions change a list, and all look: without a branch for each.
        let stored = edit.bytes()[UNLINKED_OFFSET..UUID_OFFSET].as_chunks::<4>().0;
        let differences = stored
            .iter()
            .zip(&self.unlinked)
            .fold(0, |found, (bytes, head)| found | (u32::from_ne_bytes(*bytes) ^ head.0.to_be()));
        if differences != 0 {
            let heads = self.unlinked.iter().enumerate();
            store_changes(edit, heads.map(|(list, head)| (UNLINKED_OFFSET + 4 * list, head.0)));
        }
    }
}
