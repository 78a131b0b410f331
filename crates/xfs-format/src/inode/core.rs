//! The core of an inode: decoded, encoded, and where the two forks lie behind it.
//!
//! Layout: docs/format/inodes.md#core and docs/format/inodes.md#forks. [`InodeCore::decode`]
//! refuses what the struct cannot represent; whether the fields make sense together is
//! [`InodeCore::verify`]'s to say.

use self::offset as at;
use crate::TimestampError;
use crate::bytes::{array, be16, be32, be64, put_be16, put_be32, put_be64};
use crate::checksum;
use crate::geometry::Geometry;
use crate::units::{AgInode, InodeNumber, Lsn};
use crate::{FileType, InodeFlags, InodeFlags2, Timestamp, TimestampEncoding};
use std::ops::Range;
use uuid::Uuid;

/// "IN", the first two bytes of every inode.
pub const INODE_MAGIC: u16 = 0x494e;

/// Offset of the checksum, which covers the whole inode.
pub const INODE_CRC_OFFSET: usize = 100;

/// Offset of the generation in an inode.
pub const INODE_GENERATION_OFFSET: usize = 92;

/// Most links that are counted.
pub const NLINK_MAX: u32 = (1 << 31) - 1;

/// Link count that means "too many to count": it never changes again.
pub const NLINK_PINNED: u32 = u32::MAX;

/// Byte offsets of the core's fields.
pub(crate) mod offset {
    pub(crate) const MODE: usize = 2;
    pub(crate) const VERSION: usize = 4;
    pub(crate) const FORMAT: usize = 5;
    pub(crate) const METATYPE: usize = 6;
    pub(crate) const UID: usize = 8;
    pub(crate) const GID: usize = 12;
    pub(crate) const NLINK: usize = 16;
    pub(crate) const PROJECT_LOW: usize = 20;
    pub(crate) const PROJECT_HIGH: usize = 22;
    pub(crate) const BIG_NEXTENTS: usize = 24;
    pub(crate) const FLUSH_ITERATION: usize = 30;
    pub(crate) const ATIME: usize = 32;
    pub(crate) const MTIME: usize = 40;
    pub(crate) const CTIME: usize = 48;
    pub(crate) const SIZE: usize = 56;
    pub(crate) const NBLOCKS: usize = 64;
    pub(crate) const EXTSIZE: usize = 72;
    pub(crate) const NEXTENTS: usize = 76;
    pub(crate) const ANEXTENTS: usize = 80;
    pub(crate) const FORKOFF: usize = 82;
    pub(crate) const AFORMAT: usize = 83;
    pub(crate) const DM_EVENT_MASK: usize = 84;
    pub(crate) const DM_STATE: usize = 88;
    pub(crate) const FLAGS: usize = 90;
    pub(crate) const GENERATION: usize = 92;
    pub(crate) const NEXT_UNLINKED: usize = 96;
    pub(crate) const CHANGECOUNT: usize = 104;
    pub(crate) const LSN: usize = 112;
    pub(crate) const FLAGS2: usize = 120;
    pub(crate) const COWEXTSIZE: usize = 128;
    pub(crate) const PADDING: std::ops::Range<usize> = 132..144;
    pub(crate) const CRTIME: usize = 144;
    pub(crate) const INO: usize = 152;
    pub(crate) const UUID: usize = 160;
}

/// How one fork of an inode is stored (docs/format/inodes.md#forks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ForkFormat {
    /// A device number.
    Dev = 0,
    /// The content itself, in the inode.
    Local = 1,
    /// A list of extents in the inode.
    #[default]
    Extents = 2,
    /// The root of an extent tree.
    Btree = 3,
    /// Never used.
    Uuid = 4,
    /// The root of a tree of a realtime group.
    MetaBtree = 5,
}

impl ForkFormat {
    /// The format of this number.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Dev,
            1 => Self::Local,
            2 => Self::Extents,
            3 => Self::Btree,
            4 => Self::Uuid,
            5 => Self::MetaBtree,
            _ => return None,
        })
    }
}

/// The core of one inode. Fields that version 4 does not store are zero there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InodeCore {
    /// File type and permissions; 0 for a free inode.
    pub mode: u16,
    /// 3 on version 5 volumes, else 2. Version 1 is decoded as, and becomes, version 2.
    pub version: u8,
    /// Format of the data fork.
    pub data_format: ForkFormat,
    /// Format of the attribute fork; extents if there is none.
    pub attr_format: ForkFormat,
    /// Type of a metadata file, 0 for all others.
    pub metatype: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Links, or [`NLINK_PINNED`].
    pub nlink: u32,
    /// Project.
    pub project: u32,
    /// Count of flushes, version 4 only.
    pub flush_iteration: u16,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the content.
    pub mtime: Timestamp,
    /// Last change of the inode.
    pub ctime: Timestamp,
    /// Size in bytes.
    pub size: u64,
    /// Blocks of both forks and their extent trees.
    pub nblocks: u64,
    /// Extent size hint in blocks.
    pub extsize: u32,
    /// Extents of the data fork.
    pub data_extents: u64,
    /// Extents of the attribute fork.
    pub attr_extents: u32,
    /// Where the attribute fork starts, in units of 8 bytes from the literal area; 0: none.
    pub forkoff: u8,
    /// Event mask of an interface that no longer exists; kept.
    pub dm_event_mask: u32,
    /// State of the same interface; kept.
    pub dm_state: u16,
    /// First flag word.
    pub flags: InodeFlags,
    /// Generation: told apart from earlier inodes of this number.
    pub generation: u32,
    /// Next on the unlinked list, or null.
    pub next_unlinked: AgInode,
    /// Count of changes.
    pub changecount: u64,
    /// Log position of the last change.
    pub lsn: Lsn,
    /// Second flag word.
    pub flags2: InodeFlags2,
    /// Copy-on-write extent size hint in blocks.
    pub cowextsize: u32,
    /// Birth time.
    pub crtime: Timestamp,
    /// Own number.
    pub number: InodeNumber,
    /// Metadata identifier of the volume.
    pub uuid: Uuid,
}

impl InodeCore {
    /// Decodes the core at the start of `bytes`, which are at least as long as a core.
    ///
    /// # Errors
    ///
    /// The message names the field: magic, version, a fork format that does not exist, or an
    /// extent counter outside the field that the flags select.
    pub fn decode(bytes: &[u8], geometry: &Geometry) -> Result<Self, String> {
        if bytes.len() < geometry.inode_core_size() {
            return Err(format!("{} bytes are too few for an inode", bytes.len()));
        }
        let magic = be16(bytes, 0);
        if magic != INODE_MAGIC {
            return Err(format!("magic is {magic:#06x}, not {INODE_MAGIC:#06x}"));
        }
        let version = bytes[at::VERSION];
        if !(if geometry.features.crc { version == 3 } else { matches!(version, 1 | 2) }) {
            return Err(format!("inode version {version} does not belong on this volume"));
        }
        let mut core = Self::decode_common(bytes, version)?;
        if geometry.features.crc {
            core.decode_v3(bytes)?;
        }
        let encoding = core.timestamp_encoding();
        core.atime = Timestamp::decode(be64(bytes, at::ATIME), encoding);
        core.mtime = Timestamp::decode(be64(bytes, at::MTIME), encoding);
        core.ctime = Timestamp::decode(be64(bytes, at::CTIME), encoding);
        Ok(core)
    }

    /// The fields that every version has at the same place, but for the timestamps.
    fn decode_common(bytes: &[u8], version: u8) -> Result<Self, String> {
        let format = |offset: usize, name: &str| {
            let raw = bytes[offset];
            ForkFormat::from_raw(raw).ok_or_else(|| format!("{name} fork format {raw} is unknown"))
        };
        let project = |low, high| u32::from(be16(bytes, high)) << 16 | u32::from(be16(bytes, low));
        let old = version == 1;
        Ok(Self {
            mode: be16(bytes, at::MODE),
            version: version.max(2),
            data_format: format(at::FORMAT, "data")?,
            attr_format: format(at::AFORMAT, "attribute")?,
            // Version 1 keeps its link count here, and has no project.
            metatype: if version == 3 { be16(bytes, at::METATYPE) } else { 0 },
            uid: be32(bytes, at::UID),
            gid: be32(bytes, at::GID),
            nlink: if old { u32::from(be16(bytes, at::METATYPE)) } else { be32(bytes, at::NLINK) },
            project: if old { 0 } else { project(at::PROJECT_LOW, at::PROJECT_HIGH) },
            flush_iteration: if version == 3 { 0 } else { be16(bytes, at::FLUSH_ITERATION) },
            size: be64(bytes, at::SIZE),
            nblocks: be64(bytes, at::NBLOCKS),
            extsize: be32(bytes, at::EXTSIZE),
            data_extents: u64::from(be32(bytes, at::NEXTENTS)),
            attr_extents: u32::from(be16(bytes, at::ANEXTENTS)),
            forkoff: bytes[at::FORKOFF],
            dm_event_mask: be32(bytes, at::DM_EVENT_MASK),
            dm_state: be16(bytes, at::DM_STATE),
            flags: InodeFlags::from_bits_retain(be16(bytes, at::FLAGS)),
            generation: be32(bytes, at::GENERATION),
            next_unlinked: AgInode(be32(bytes, at::NEXT_UNLINKED)),
            ..Self::default()
        })
    }

    fn decode_v3(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.changecount = be64(bytes, at::CHANGECOUNT);
        self.lsn = Lsn(be64(bytes, at::LSN));
        self.flags2 = InodeFlags2::from_bits_retain(be64(bytes, at::FLAGS2));
        self.cowextsize = be32(bytes, at::COWEXTSIZE);
        self.crtime = Timestamp::decode(be64(bytes, at::CRTIME), self.timestamp_encoding());
        self.number = InodeNumber(be64(bytes, at::INO));
        self.uuid = Uuid::from_bytes(array(bytes, at::UUID));
        let big = be64(bytes, at::BIG_NEXTENTS);
        if self.flags2.contains(InodeFlags2::NREXT64) {
            if self.attr_extents != 0 {
                return Err(format!("unused attribute extent counter is {}", self.attr_extents));
            }
            self.data_extents = big;
            self.attr_extents = be32(bytes, at::NEXTENTS);
        } else if big != 0 {
            return Err(format!("unused wide extent counter is {big}"));
        }
        Ok(())
    }

    /// Writes the core to the start of `bytes` (at least a core long); the fork area and the
    /// checksum stay as they are.
    ///
    /// # Errors
    ///
    /// A timestamp that the inode's encoding does not hold; `bytes` are then unchanged.
    pub fn encode(&self, bytes: &mut [u8], geometry: &Geometry) -> Result<(), TimestampError> {
        let encoding = self.timestamp_encoding();
        let times = [self.atime, self.mtime, self.ctime, self.crtime];
        let mut raw = [0; 4];
        for (raw, time) in raw.iter_mut().zip(times) {
            *raw = time.encode(encoding)?;
        }
        let [atime, mtime, ctime, crtime] = raw;
        self.encode_common(bytes);
        put_be64(bytes, at::ATIME, atime);
        put_be64(bytes, at::MTIME, mtime);
        put_be64(bytes, at::CTIME, ctime);
        if geometry.features.crc {
            put_be64(bytes, at::CRTIME, crtime);
            self.encode_v3(bytes);
        }
        Ok(())
    }

    fn encode_common(&self, bytes: &mut [u8]) {
        put_be16(bytes, 0, INODE_MAGIC);
        put_be16(bytes, at::MODE, self.mode);
        bytes[at::VERSION] = self.version;
        bytes[at::FORMAT] = self.data_format as u8;
        put_be16(bytes, at::METATYPE, self.metatype);
        put_be32(bytes, at::UID, self.uid);
        put_be32(bytes, at::GID, self.gid);
        put_be32(bytes, at::NLINK, self.nlink);
        put_be16(bytes, at::PROJECT_LOW, self.project as u16);
        put_be16(bytes, at::PROJECT_HIGH, (self.project >> 16) as u16);
        put_be64(bytes, at::BIG_NEXTENTS, u64::from(self.flush_iteration));
        put_be64(bytes, at::SIZE, self.size);
        put_be64(bytes, at::NBLOCKS, self.nblocks);
        put_be32(bytes, at::EXTSIZE, self.extsize);
        if self.flags2.contains(InodeFlags2::NREXT64) {
            put_be64(bytes, at::BIG_NEXTENTS, self.data_extents);
            put_be32(bytes, at::NEXTENTS, self.attr_extents);
            put_be16(bytes, at::ANEXTENTS, 0);
        } else {
            put_be32(bytes, at::NEXTENTS, self.data_extents as u32);
            put_be16(bytes, at::ANEXTENTS, self.attr_extents as u16);
        }
        bytes[at::FORKOFF] = self.forkoff;
        bytes[at::AFORMAT] = self.attr_format as u8;
        put_be32(bytes, at::DM_EVENT_MASK, self.dm_event_mask);
        put_be16(bytes, at::DM_STATE, self.dm_state);
        put_be16(bytes, at::FLAGS, self.flags.bits());
        put_be32(bytes, at::GENERATION, self.generation);
        put_be32(bytes, at::NEXT_UNLINKED, self.next_unlinked.0);
    }

    fn encode_v3(&self, bytes: &mut [u8]) {
        put_be64(bytes, at::CHANGECOUNT, self.changecount);
        put_be64(bytes, at::LSN, self.lsn.0);
        put_be64(bytes, at::FLAGS2, self.flags2.bits());
        put_be32(bytes, at::COWEXTSIZE, self.cowextsize);
        bytes[at::PADDING].fill(0);
        put_be64(bytes, at::INO, self.number.0);
        bytes[at::UUID..at::UUID + 16].copy_from_slice(self.uuid.as_bytes());
    }

    /// Writes the image of an inode that was never used over all of `inode` (one inode long), as
    /// chunk allocation leaves it. The checksum is stamped at write-back.
    pub fn write_never_used(
        inode: &mut [u8],
        geometry: &Geometry,
        number: InodeNumber,
        generation: u32,
    ) {
        inode.fill(0);
        put_be16(inode, 0, INODE_MAGIC);
        inode[at::VERSION] = if geometry.features.crc { 3 } else { 2 };
        put_be32(inode, at::GENERATION, generation);
        put_be32(inode, at::NEXT_UNLINKED, AgInode::NULL.0);
        if geometry.features.crc {
            put_be64(inode, at::INO, number.0);
            inode[at::UUID..at::UUID + 16].copy_from_slice(geometry.meta_uuid.as_bytes());
        }
    }

    /// Type of the file; `None` for a free inode.
    #[must_use]
    pub const fn file_type(&self) -> Option<FileType> {
        FileType::from_mode(self.mode)
    }

    /// How this inode stores its timestamps.
    #[must_use]
    pub fn timestamp_encoding(&self) -> TimestampEncoding {
        if self.flags2.contains(InodeFlags2::BIGTIME) {
            TimestampEncoding::Bigtime
        } else {
            TimestampEncoding::Legacy
        }
    }

    /// New space of the file is taken in multiples of so many blocks; 0 for any length.
    #[must_use]
    pub fn extent_size_hint(&self) -> u32 {
        if self.flags.contains(InodeFlags::EXTSIZE) { self.extsize } else { 0 }
    }

    /// Shared blocks of the file are copied in multiples of so many blocks; 0 for any length.
    #[must_use]
    pub fn copy_size_hint(&self) -> u32 {
        let own = if self.flags2.contains(InodeFlags2::COWEXTSIZE) { self.cowextsize } else { 0 };
        own.max(self.extent_size_hint())
    }

    /// Bytes of the inode that hold the data fork.
    #[must_use]
    pub fn data_fork(&self, geometry: &Geometry) -> Range<usize> {
        let start = geometry.inode_core_size();
        match self.forkoff {
            0 => start..geometry.inode_size(),
            // An offset that was never verified may point past the inode.
            units => start..(start + usize::from(units) * 8).min(geometry.inode_size()),
        }
    }

    /// Bytes of the inode that hold the attribute fork; empty if there is none.
    #[must_use]
    pub fn attr_fork(&self, geometry: &Geometry) -> Range<usize> {
        self.data_fork(geometry).end..geometry.inode_size()
    }
}

/// Whether the checksum of a version 3 inode is right.
#[must_use]
pub fn inode_crc_matches(inode: &[u8]) -> bool {
    checksum::verify(inode, INODE_CRC_OFFSET).is_ok()
}

/// Stores the checksum of a version 3 inode.
pub fn stamp_inode_crc(inode: &mut [u8]) {
    checksum::stamp(inode, INODE_CRC_OFFSET);
}
