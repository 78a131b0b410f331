//! Blocks of hash trees: the header they share and the interior nodes.
//!
//! Layouts: docs/format/hash-trees.md and docs/format/directories.md#block-header. Version 4
//! volumes have the same structures behind shorter headers; [`DaLayout`] knows the difference.
//! Accessors index directly and expect a block that [`verify_node`] accepted.

use crate::bytes::{EditBytes, array, be16, be32};
use crate::geometry::Geometry;
use crate::units::{FileBlock, InodeNumber};
use crate::{BufferKind, HeaderFields};
use undercroft_block::Sector;
use uuid::Uuid;

/// Levels of nodes above the leaves that a tree may have.
pub const MAX_NODE_LEVEL: u16 = 5;

/// Size of a (hash, address) pair in nodes and directory leaves.
pub const PAIR_SIZE: usize = 8;

/// Where a v5 block of a directory or attribute tree keeps its self-describing fields; `None` for
/// any other kind.
#[must_use]
pub const fn header_fields(kind: BufferKind) -> Option<HeaderFields> {
    match kind {
        BufferKind::DirBlock | BufferKind::DirData | BufferKind::DirFree => {
            Some(HeaderFields::SPACE)
        }
        BufferKind::DirLeaf1
        | BufferKind::DirLeafN
        | BufferKind::DaNode
        | BufferKind::AttrLeaf
        | BufferKind::DaAny => Some(HeaderFields::HASH),
        _ => None,
    }
}

/// Magic numbers of the kinds in [`header_fields`]: (kind, version 5, version 4). The first three
/// are be32 at 0, the others be16 at 8.
const SPACE_MAGICS: [(BufferKind, u32, u32); 3] = [
    (BufferKind::DirBlock, u32::from_be_bytes(*b"XDB3"), u32::from_be_bytes(*b"XD2B")),
    (BufferKind::DirData, u32::from_be_bytes(*b"XDD3"), u32::from_be_bytes(*b"XD2D")),
    (BufferKind::DirFree, u32::from_be_bytes(*b"XDF3"), u32::from_be_bytes(*b"XD2F")),
];
const HASH_MAGICS: [(BufferKind, u16, u16); 4] = [
    (BufferKind::DaNode, 0x3ebe, 0xfebe),
    (BufferKind::DirLeaf1, 0x3df1, 0xd2f1),
    (BufferKind::DirLeafN, 0x3dff, 0xd2ff),
    (BufferKind::AttrLeaf, 0x3bee, 0xfbee),
];

/// Checks the magic number of a block of any kind in [`header_fields`] and returns the kind, which
/// for [`BufferKind::DaAny`] is the one the magic tells. All other kinds pass.
///
/// # Errors
/// The value found instead.
pub fn resolve_magic(bytes: &[u8], kind: BufferKind, crc: bool) -> Result<BufferKind, String> {
    if header_fields(kind).is_none() {
        return Ok(kind);
    }
    if let Some((_, v5, v4)) = SPACE_MAGICS.iter().find(|(known, ..)| *known == kind) {
        let (found, wanted) = (be32(bytes, 0), if crc { *v5 } else { *v4 });
        return if found == wanted {
            Ok(kind)
        } else {
            Err(format!("magic is {found:#010x}, expected {wanted:#010x}"))
        };
    }
    let found = be16(bytes, 8);
    HASH_MAGICS
        .iter()
        .find(|(known, v5, v4)| {
            (kind == BufferKind::DaAny || kind == *known) && found == if crc { *v5 } else { *v4 }
        })
        .map(|(known, ..)| *known)
        .ok_or_else(|| format!("magic {found:#06x} is not that of a {kind:?} block"))
}

/// What a new block's header says about where it is and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct BlockIdentity {
    /// First sector of the block.
    pub blkno: Sector,
    /// Metadata identifier of the volume.
    pub uuid: Uuid,
    /// Owning inode.
    pub owner: InodeNumber,
}

/// Writes magic and self-describing fields of a block of `kind` (one of [`header_fields`] except
/// `DaAny`). Everything else in the block stays.
pub fn write_header(edit: &mut EditBytes<'_>, kind: BufferKind, crc: bool, id: &BlockIdentity) {
    if let Some((_, v5, v4)) = SPACE_MAGICS.iter().find(|(known, ..)| *known == kind) {
        edit.put_be32(0, if crc { *v5 } else { *v4 });
    } else if let Some((_, v5, v4)) = HASH_MAGICS.iter().find(|(known, ..)| *known == kind) {
        edit.put_be16(8, if crc { *v5 } else { *v4 });
    }
    if let Some(fields) = header_fields(kind).filter(|_| crc) {
        edit.put_be64(fields.blkno, id.blkno.0);
        edit.put_bytes(fields.uuid, id.uuid.as_bytes());
        edit.put_be64(fields.owner, id.owner.0);
    }
}

/// Inode that a v5 block says it belongs to.
#[must_use]
pub fn owner(bytes: &[u8], kind: BufferKind) -> Option<InodeNumber> {
    header_fields(kind).map(|at| InodeNumber(u64::from_be_bytes(array(bytes, at.owner))))
}

/// Sizes of the blocks of one hash tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaLayout {
    /// Version 5 headers.
    pub crc: bool,
    /// Bytes per block of the tree: a directory block, or a file system block for attributes.
    pub block_size: usize,
}

impl DaLayout {
    /// Layout of a fork whose blocks are `block_blocks` file system blocks.
    #[must_use]
    pub const fn new(geometry: &Geometry, block_blocks: u32) -> Self {
        Self {
            crc: geometry.features.crc,
            block_size: geometry.block_size() * block_blocks as usize,
        }
    }

    /// Bytes of the part of the header that all blocks of the tree share.
    #[must_use]
    pub const fn info_size(self) -> usize {
        if self.crc { 56 } else { 12 }
    }

    /// Bytes before the pairs of a node or of a directory leaf.
    #[must_use]
    pub const fn header_size(self) -> usize {
        if self.crc { 64 } else { 16 }
    }

    /// Pairs that fit a node or a directory leaf.
    #[must_use]
    pub const fn max_pairs(self) -> usize {
        (self.block_size - self.header_size()) / PAIR_SIZE
    }

    /// Offset of pair `index`.
    #[must_use]
    pub const fn pair_offset(self, index: usize) -> usize {
        self.header_size() + index * PAIR_SIZE
    }

    /// Hash of pair `index` of a node or directory leaf.
    #[must_use]
    #[inline]
    pub fn hash(self, bytes: &[u8], index: usize) -> u32 {
        be32(bytes, self.pair_offset(index))
    }

    /// Number of pairs of a node or directory leaf.
    #[must_use]
    #[inline]
    pub fn count(self, bytes: &[u8]) -> usize {
        usize::from(be16(bytes, self.info_size()))
    }

    /// Sets the number of pairs; it fits the block and hence 16 bits.
    pub fn set_count(self, edit: &mut EditBytes<'_>, count: usize) {
        edit.put_be16(self.info_size(), count as u16);
    }

    /// Level of a node: 1 just above the leaves.
    #[must_use]
    pub fn level(self, bytes: &[u8]) -> u16 {
        be16(bytes, self.info_size() + 2)
    }

    /// Sets the level of a node.
    pub fn set_level(self, edit: &mut EditBytes<'_>, level: u16) {
        edit.put_be16(self.info_size() + 2, level);
    }

    /// Child `index` of a node.
    #[must_use]
    #[inline]
    pub fn child(self, bytes: &[u8], index: usize) -> FileBlock {
        FileBlock(be32(bytes, self.pair_offset(index) + 4).into())
    }

    /// Sets a pair of a node. Children lie in the first 2^32 blocks (the address spaces end
    /// there), so the number fits.
    pub fn set_child(self, edit: &mut EditBytes<'_>, index: usize, hash: u32, child: FileBlock) {
        edit.put_be32(self.pair_offset(index), hash);
        edit.put_be32(self.pair_offset(index) + 4, child.0 as u32);
    }
}

/// Next block on the same level, `None` for the last.
#[must_use]
pub fn forward(bytes: &[u8]) -> Option<FileBlock> {
    link(be32(bytes, 0))
}

/// Previous block on the same level, `None` for the first.
#[must_use]
pub fn backward(bytes: &[u8]) -> Option<FileBlock> {
    link(be32(bytes, 4))
}

/// Sets the next block on the same level.
pub fn set_forward(edit: &mut EditBytes<'_>, block: Option<FileBlock>) {
    edit.put_be32(0, block.map_or(0, |block| block.0 as u32));
}

/// Sets the previous block on the same level.
pub fn set_backward(edit: &mut EditBytes<'_>, block: Option<FileBlock>) {
    edit.put_be32(4, block.map_or(0, |block| block.0 as u32));
}

fn link(raw: u32) -> Option<FileBlock> {
    (raw != 0).then(|| FileBlock(raw.into()))
}

/// Index of the first of `count` ordered items whose hash is not below `hash`; `count` if all are.
#[must_use]
#[inline]
pub fn lower_bound(count: usize, hash: u32, hash_of: impl Fn(usize) -> u32) -> usize {
    let (mut low, mut len) = (0, count);
    while len > 0 {
        let half = len / 2;
        if hash_of(low + half) < hash {
            low += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    low
}

/// Checks the structure of a node.
///
/// # Errors
/// The field and its defect.
pub fn verify_node(bytes: &[u8], layout: DaLayout) -> Result<(), String> {
    let (count, level) = (layout.count(bytes), layout.level(bytes));
    if level == 0 || level > MAX_NODE_LEVEL {
        return Err(format!("node level is {level}, must be 1 to {MAX_NODE_LEVEL}"));
    }
    if count == 0 || count > layout.max_pairs() {
        return Err(format!("node count is {count}, must be 1 to {}", layout.max_pairs()));
    }
    for index in 0..count {
        if layout.child(bytes, index).0 == 0 {
            return Err(format!("child {index} of the node is block 0"));
        }
        if index > 0 && layout.hash(bytes, index) < layout.hash(bytes, index - 1) {
            return Err(format!("hash {index} of the node is below its predecessor"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;

    #[test]
    fn headers_are_where_the_format_says() {
        let (mut bytes, mut changes) = (vec![0; 4096], Changes::default());
        let id = BlockIdentity {
            blkno: Sector(0x1122),
            uuid: Uuid::from_u128(7),
            owner: InodeNumber(131),
        };
        for (kind, magic_at, magic) in [
            (BufferKind::DirData, 0, &b"XDD3"[..]),
            (BufferKind::DirBlock, 0, b"XDB3"),
            (BufferKind::DirFree, 0, b"XDF3"),
            (BufferKind::DaNode, 8, b"\x3e\xbe"),
            (BufferKind::DirLeaf1, 8, b"\x3d\xf1"),
            (BufferKind::DirLeafN, 8, b"\x3d\xff"),
            (BufferKind::AttrLeaf, 8, b"\x3b\xee"),
        ] {
            bytes.fill(0);
            write_header(&mut EditBytes::new(&mut bytes, &mut changes), kind, true, &id);
            assert_eq!(&bytes[magic_at..magic_at + magic.len()], magic);
            assert_eq!(owner(&bytes, kind), Some(id.owner));
            assert_eq!(resolve_magic(&bytes, kind, true), Ok(kind));
            assert!(resolve_magic(&bytes, kind, false).is_err());
            let any = resolve_magic(&bytes, BufferKind::DaAny, true);
            assert_eq!(any.ok(), (magic_at == 8).then_some(kind));
        }
    }

    #[test]
    fn node_verifier_names_the_field() {
        let layout = DaLayout { crc: true, block_size: 1024 };
        let (mut bytes, mut changes) = (vec![0; 1024], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        layout.set_level(&mut edit, 1);
        assert!(verify_node(edit.bytes(), layout).unwrap_err().contains("count"));
        layout.set_count(&mut edit, 2);
        layout.set_child(&mut edit, 0, 9, FileBlock(4));
        layout.set_child(&mut edit, 1, 9, FileBlock(5));
        assert_eq!(verify_node(edit.bytes(), layout), Ok(()));
        layout.set_child(&mut edit, 1, 8, FileBlock(5));
        assert!(verify_node(edit.bytes(), layout).unwrap_err().contains("hash 1"));
        layout.set_level(&mut edit, 6);
        assert!(verify_node(edit.bytes(), layout).unwrap_err().contains("level"));
    }

    #[test]
    fn lower_bound_finds_the_first_of_equal_hashes() {
        let hashes = [1, 3, 3, 3, 8];
        for (hash, index) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 4), (8, 4), (9, 5)] {
            assert_eq!(lower_bound(hashes.len(), hash, |i| hashes[i]), index);
        }
    }
}
