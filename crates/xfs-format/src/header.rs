//! Self-describing headers: where each kind of block keeps its checksum, its address, its owner
//! and the volume it belongs to.
//!
//! Table and checking order: docs/format/checksums.md#places and docs/format/checksums.md#order.
//! The structure behind the header is checked by the verifier of each kind.

use super::{BufferKind, TreeKind, checksum};
use crate::bytes::{be16, be32, be64, put_be64};
use crate::units::Lsn;
use undercroft_block::Sector;
use uuid::Uuid;

/// Offsets of the self-describing fields in a v5 block, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// le32: CRC32C.
    pub crc: usize,
    /// be64: own address in units of 512 bytes.
    pub blkno: usize,
    /// be64: log sequence number of the last change.
    pub lsn: usize,
    /// 16 bytes: metadata identifier of the volume.
    pub uuid: usize,
    /// Owner: a group (be32) in the trees of a group, an inode (be64) elsewhere.
    pub owner: usize,
}

impl HeaderFields {
    /// Blocks of the trees of a group.
    pub const SHORT_TREE: Self = Self { crc: 52, blkno: 16, lsn: 24, uuid: 32, owner: 48 };
    /// Blocks of mapping trees.
    pub const LONG_TREE: Self = Self { crc: 64, blkno: 24, lsn: 32, uuid: 40, owner: 56 };
    /// Data, block-form and free-index blocks of directories.
    pub const SPACE: Self = Self { crc: 4, blkno: 8, lsn: 16, uuid: 24, owner: 40 };
    /// Size of the header of those blocks.
    pub const SPACE_SIZE: usize = 48;
    /// Blocks of hash trees.
    pub const HASH: Self = Self { crc: 12, blkno: 16, lsn: 24, uuid: 32, owner: 48 };
    /// Blocks of attribute values and of link targets.
    pub const REMOTE: Self = Self { crc: 12, blkno: 40, lsn: 48, uuid: 16, owner: 32 };
}

/// An owner field: its offset and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    None,
    Narrow(usize),
    Wide(usize),
}

/// How a kind of v5 block describes itself.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    magic: Magic,
    crc: usize,
    lsn: usize,
    uuid: usize,
    blkno: Option<usize>,
    owner: Owner,
    /// Every block of a longer buffer carries a header of its own (remote attribute values).
    per_block: bool,
    /// Written directly, never through the journal: the sequence number is all ones.
    unlogged: bool,
}

#[derive(Clone, Copy, Debug)]
enum Magic {
    /// 32 bits at offset 0.
    Wide(u32),
    /// 16 bits at offset 8.
    Da(&'static [u16]),
}

/// A block that an inode owns, and says where it lives.
const fn owned(magic: Magic, at: HeaderFields) -> Header {
    Header {
        magic,
        crc: at.crc,
        lsn: at.lsn,
        uuid: at.uuid,
        blkno: Some(at.blkno),
        owner: Owner::Wide(at.owner),
        per_block: false,
        unlogged: false,
    }
}

const fn short(tree: TreeKind) -> Header {
    let at = HeaderFields::SHORT_TREE;
    Header { owner: Owner::Narrow(at.owner), ..owned(Magic::Wide(tree.magic_v5()), at) }
}

const fn long(tree: TreeKind) -> Header {
    owned(Magic::Wide(tree.magic_v5()), HeaderFields::LONG_TREE)
}

const fn directory(magic: u32) -> Header {
    owned(Magic::Wide(magic), HeaderFields::SPACE)
}

const fn da(magics: &'static [u16]) -> Header {
    owned(Magic::Da(magics), HeaderFields::HASH)
}

const fn remote(magic: u32) -> Header {
    owned(Magic::Wide(magic), HeaderFields::REMOTE)
}

/// A header of a group, whose address is fixed.
const fn group(magic: u32, crc: usize, lsn: usize, uuid: usize, owner: usize) -> Header {
    Header {
        magic: Magic::Wide(magic),
        crc,
        lsn,
        uuid,
        blkno: None,
        owner: Owner::Narrow(owner),
        per_block: false,
        unlogged: false,
    }
}

impl BufferKind {
    /// What a v5 block that may be anywhere on a volume seems to be, by its magic number. Headers of
    /// groups have their places, and inodes have no header.
    #[must_use]
    pub fn of_block(block: &[u8]) -> Option<Self> {
        const OTHERS: [BufferKind; 9] = [
            BufferKind::DirBlock,
            BufferKind::DirData,
            BufferKind::DirFree,
            BufferKind::DirLeaf1,
            BufferKind::DirLeafN,
            BufferKind::DaNode,
            BufferKind::AttrLeaf,
            BufferKind::AttrRemote,
            BufferKind::Symlink,
        ];
        let mut kinds = TreeKind::ALL.into_iter().map(Self::Tree).chain(OTHERS);
        kinds.find(|kind| Header::of(*kind).is_some_and(|header| header.has_magic(block)))
    }
}

impl Header {
    /// The header of a kind of v5 buffer. Inode clusters have none: each inode describes itself.
    #[must_use]
    pub const fn of(kind: BufferKind) -> Option<Self> {
        Some(match kind {
            BufferKind::Superblock => Self {
                magic: Magic::Wide(0x5846_5342),
                crc: 224,
                lsn: 240,
                // The visible identifier; the superblock has a verifier of its own.
                uuid: 32,
                blkno: None,
                owner: Owner::None,
                per_block: false,
                unlogged: false,
            },
            BufferKind::Agf => group(0x5841_4746, 216, 208, 64, 8),
            BufferKind::Agi => group(0x5841_4749, 312, 320, 296, 8),
            BufferKind::Agfl => group(0x5841_464c, 32, 24, 8, 4),
            BufferKind::Tree(TreeKind::Bmbt) => long(TreeKind::Bmbt),
            BufferKind::Tree(tree) => short(tree),
            BufferKind::InodeCluster => return None,
            BufferKind::DirBlock => directory(0x5844_4233),
            BufferKind::DirData => directory(0x5844_4433),
            BufferKind::DirFree => directory(0x5844_4633),
            BufferKind::DirLeaf1 => da(&[0x3df1]),
            BufferKind::DirLeafN => da(&[0x3dff]),
            BufferKind::DaNode => da(&[0x3ebe]),
            BufferKind::AttrLeaf => da(&[0x3bee]),
            BufferKind::DaAny => da(&[0x3ebe, 0x3df1, 0x3dff, 0x3bee]),
            BufferKind::AttrRemote => {
                Self { per_block: true, unlogged: true, ..remote(0x5841_524d) }
            }
            BufferKind::Symlink => remote(0x5853_4c4d),
        })
    }

    /// Length of the piece of a buffer that one header covers.
    const fn unit(&self, len: usize, block_size: usize) -> usize {
        if self.per_block { block_size } else { len }
    }

    /// Checks checksum, magic, volume and address, in this order; returns the first defect.
    ///
    /// # Errors
    /// The field that does not hold, with both values.
    pub fn verify(
        &self,
        bytes: &[u8],
        sector: Sector,
        uuid: &Uuid,
        block_size: usize,
    ) -> Result<(), String> {
        for (index, piece) in bytes.chunks_exact(self.unit(bytes.len(), block_size)).enumerate() {
            let sector = Sector(sector.0 + (index * piece.len() / 512) as u64);
            checksum::verify(piece, self.crc).map_err(|error| error.to_string())?;
            self.verify_magic(piece)?;
            if piece[self.uuid..self.uuid + 16] != uuid.as_bytes()[..] {
                let found = Uuid::from_bytes(crate::bytes::array(piece, self.uuid));
                return Err(format!("belongs to volume {found}, not to {uuid}"));
            }
            if let Some(offset) = self.blkno
                && be64(piece, offset) != sector.0
            {
                return Err(format!("says that it lives at sector {}", be64(piece, offset)));
            }
        }
        Ok(())
    }

    /// Whether a block has the magic number.
    #[must_use]
    pub fn has_magic(&self, block: &[u8]) -> bool {
        match self.magic {
            Magic::Wide(magic) => block.len() >= 4 && be32(block, 0) == magic,
            Magic::Da(magics) => block.len() >= 10 && magics.contains(&be16(block, 8)),
        }
    }

    fn verify_magic(&self, piece: &[u8]) -> Result<(), String> {
        if self.has_magic(piece) {
            return Ok(());
        }
        Err(match self.magic {
            Magic::Wide(magic) => {
                format!("magic is {:#010x}, expected {magic:#010x}", be32(piece, 0))
            }
            Magic::Da(magics) => {
                format!("magic is {:#06x}, expected one of {magics:#06x?}", be16(piece, 8))
            }
        })
    }

    /// Owner (group or inode) written in the header, if the kind has one.
    #[must_use]
    pub fn owner(&self, bytes: &[u8]) -> Option<u64> {
        match self.owner {
            Owner::None => None,
            Owner::Narrow(offset) => Some(u64::from(be32(bytes, offset))),
            Owner::Wide(offset) => Some(be64(bytes, offset)),
        }
    }

    /// Where the header names the inode that owns the block, if the kind belongs to inodes.
    #[must_use]
    pub const fn inode_owner_offset(&self) -> Option<usize> {
        match self.owner {
            Owner::Wide(offset) => Some(offset),
            Owner::None | Owner::Narrow(_) => None,
        }
    }

    /// Where the block says that it lives, in units of 512 bytes; `None` for kinds with a fixed address.
    #[must_use]
    pub fn address(&self, bytes: &[u8]) -> Option<Sector> {
        self.blkno.map(|offset| Sector(be64(bytes, offset)))
    }

    /// Length of a block by its checksum: the first of `lens` that has the right one.
    #[must_use]
    pub fn length(&self, bytes: &[u8], lens: impl IntoIterator<Item = usize>) -> Option<usize> {
        checksum::matching_len(bytes, self.crc, lens)
    }

    /// Gives a buffer the address `sector`, in each of its headers.
    pub fn set_address(&self, bytes: &mut [u8], sector: Sector, block_size: usize) {
        let Some(offset) = self.blkno else { return };
        let unit = self.unit(bytes.len(), block_size);
        for (index, piece) in bytes.chunks_exact_mut(unit).enumerate() {
            put_be64(piece, offset, sector.0 + (index * unit / 512) as u64);
        }
    }

    /// Volume that the block belongs to, as the header says.
    #[must_use]
    pub fn volume(&self, bytes: &[u8]) -> Uuid {
        Uuid::from_bytes(crate::bytes::array(bytes, self.uuid))
    }

    /// Whether the checksum is that of the bytes.
    #[must_use]
    pub fn checksum_matches(&self, bytes: &[u8], block_size: usize) -> bool {
        let mut pieces = bytes.chunks_exact(self.unit(bytes.len(), block_size));
        pieces.all(|piece| checksum::verify(piece, self.crc).is_ok())
    }

    /// Log position of the last change, as the header says; `None` for kinds that never go through
    /// the journal.
    #[must_use]
    pub fn lsn(&self, bytes: &[u8]) -> Option<Lsn> {
        (!self.unlogged).then(|| Lsn(be64(bytes, self.lsn)))
    }

    /// Stamps sequence number and checksum for writing.
    pub fn stamp(&self, bytes: &mut [u8], lsn: Lsn, block_size: usize) {
        let unit = self.unit(bytes.len(), block_size);
        let lsn = if self.unlogged { Lsn::NULL } else { lsn };
        for piece in bytes.chunks_exact_mut(unit) {
            put_be64(piece, self.lsn, lsn.0);
            checksum::stamp(piece, self.crc);
        }
    }
}
