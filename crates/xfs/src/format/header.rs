//! Self-describing headers: where each kind of block keeps its checksum, its address, its owner
//! and the volume it belongs to.
//!
//! Table and checking order: format reference, sections 1.3 and 1.4. The structure behind the
//! header is checked by the verifier of each kind.

use super::{BufferKind, TreeKind, checksum};
use crate::bytes::{be16, be32, be64};
use crate::units::Lsn;
use undercroft_block::Sector;
use uuid::Uuid;

/// An owner field: its offset and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    None,
    Narrow(usize),
    Wide(usize),
}

/// Offsets of the self-describing fields of one kind of v5 block.
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

const fn short(tree: TreeKind) -> Header {
    Header {
        magic: Magic::Wide(tree.magic_v5()),
        crc: 52,
        lsn: 24,
        uuid: 32,
        blkno: Some(16),
        owner: Owner::Narrow(48),
        per_block: false,
        unlogged: false,
    }
}

const fn long(tree: TreeKind) -> Header {
    Header {
        magic: Magic::Wide(tree.magic_v5()),
        crc: 64,
        lsn: 32,
        uuid: 40,
        blkno: Some(24),
        owner: Owner::Wide(56),
        per_block: false,
        unlogged: false,
    }
}

const fn directory(magic: u32) -> Header {
    Header {
        magic: Magic::Wide(magic),
        crc: 4,
        lsn: 16,
        uuid: 24,
        blkno: Some(8),
        owner: Owner::Wide(40),
        per_block: false,
        unlogged: false,
    }
}

const fn da(magics: &'static [u16]) -> Header {
    Header {
        magic: Magic::Da(magics),
        crc: 12,
        lsn: 24,
        uuid: 32,
        blkno: Some(16),
        owner: Owner::Wide(48),
        per_block: false,
        unlogged: false,
    }
}

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
            BufferKind::AttrRemote => Self {
                magic: Magic::Wide(0x5841_524d),
                crc: 12,
                lsn: 48,
                uuid: 16,
                blkno: Some(40),
                owner: Owner::Wide(32),
                per_block: true,
                unlogged: true,
            },
            BufferKind::Symlink => Self {
                magic: Magic::Wide(0x5853_4c4d),
                crc: 12,
                lsn: 48,
                uuid: 16,
                blkno: Some(40),
                owner: Owner::Wide(32),
                per_block: false,
                unlogged: false,
            },
        })
    }

    /// Length of the piece of a buffer that one header covers.
    const fn unit(&self, len: usize, block_size: usize) -> usize {
        if self.per_block { block_size } else { len }
    }

    /// Checks checksum, magic, volume and address, in this order; says what is wrong.
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

    fn verify_magic(&self, piece: &[u8]) -> Result<(), String> {
        match self.magic {
            Magic::Wide(magic) if be32(piece, 0) != magic => {
                Err(format!("magic is {:#010x}, expected {magic:#010x}", be32(piece, 0)))
            }
            Magic::Da(magics) if !magics.contains(&be16(piece, 8)) => {
                Err(format!("magic is {:#06x}, expected one of {magics:#06x?}", be16(piece, 8)))
            }
            _ => Ok(()),
        }
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
            crate::bytes::put_be64(piece, self.lsn, lsn.0);
            checksum::stamp(piece, self.crc);
        }
    }
}
