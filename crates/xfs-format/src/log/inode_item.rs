//! Log item of an inode: what was changed, its core and the images of its forks
//! (docs/format/journal/items.md#inode).
//!
//! The core in the log is the core on the disk with every number in little-endian order: the same
//! exchange of bytes converts both ways.

use super::item::{check_at_least, check_length};
use crate::bytes::{be16, be64, le16, le32, le64, put_be16, put_be64};
use crate::inode::core::offset as at;
use crate::units::InodeNumber;
use crate::{BmapRoot, FieldDefect, InodeFlags2, LogItemKind, Rule};
use bitflags::bitflags;
use undercroft_block::Sector;
use uuid::Uuid;

bitflags! {
    /// The parts of an inode's item besides the core.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InodeItemFields: u32 {
        /// The core: always.
        const CORE = 0x001;
        /// Content of a local data fork.
        const DATA_LOCAL = 0x002;
        /// Extents of the data fork.
        const DATA_EXTENTS = 0x004;
        /// Root of the tree of the data fork.
        const DATA_ROOT = 0x008;
        /// Device number.
        const DEVICE = 0x010;
        /// Content of a local attribute fork.
        const ATTR_LOCAL = 0x040;
        /// Extents of the attribute fork.
        const ATTR_EXTENTS = 0x080;
        /// Root of the tree of the attribute fork.
        const ATTR_ROOT = 0x100;
        /// The blocks of the data fork's tree get this inode as their owner.
        const DATA_OWNER = 0x200;
        /// The blocks of the attribute fork's tree get this inode as their owner.
        const ATTR_OWNER = 0x400;
        /// Any content of the data fork in a region of its own.
        const DATA = 0x00e;
        /// Any content of the attribute fork.
        const ATTR = 0x1c0;
    }
}

/// First region of an inode's item. The core follows, then the images of the data and attribute
/// forks that [`fields`](Self::fields) tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeItem {
    /// The parts in the item.
    pub fields: InodeItemFields,
    /// Bytes of the image of the attribute fork, without padding.
    pub attr_len: u16,
    /// Bytes of the image of the data fork, without padding.
    pub data_len: u16,
    /// Which inode.
    pub inode: InodeNumber,
    /// Device number as on disk, with [`InodeItemFields::DEVICE`].
    pub device: u32,
    /// Where the buffer of its cluster starts.
    pub cluster: Sector,
    /// Sectors of the cluster.
    pub cluster_sectors: u32,
    /// Byte of the cluster at which the inode starts.
    pub offset: u32,
}

impl InodeItem {
    /// Bytes in the log.
    pub const LEN: usize = 56;
    /// Bytes of the form that 32-bit kernels write: the number comes four bytes earlier.
    const LEN_32: usize = 52;

    /// Reads the first region, in either form.
    ///
    /// # Errors
    /// The region has another length, or says that a fork has two contents.
    pub fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        let shift = if region.len() == Self::LEN_32 { 4 } else { 0 };
        check_length(region, Self::LEN - shift)?;
        let bits = le32(region, 4);
        let fields = InodeItemFields::from_bits_retain(bits);
        let one = |of: InodeItemFields| (fields & of).bits().count_ones() <= 1;
        let both = one(InodeItemFields::DATA) && one(InodeItemFields::ATTR);
        FieldDefect::unless(both, "ilf_fields", bits, Rule::Text("one content for each fork"))?;
        Ok(Self {
            fields,
            attr_len: le16(region, 8),
            data_len: le16(region, 10),
            inode: InodeNumber(le64(region, 16 - shift)),
            device: le32(region, 24 - shift),
            cluster: Sector(le64(region, 40 - shift)),
            cluster_sectors: le32(region, 48 - shift),
            offset: le32(region, 52 - shift),
        })
    }

    /// Number of regions of the item, the first included.
    #[must_use]
    pub fn regions(&self) -> usize {
        let forks = [InodeItemFields::DATA, InodeItemFields::ATTR];
        2 + forks.into_iter().filter(|fork| self.fields.intersects(*fork)).count()
    }

    /// Appends the first region.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(LogItemKind::Inode.encode(self.regions()));
        out.extend(self.fields.bits().to_le_bytes());
        out.extend(self.attr_len.to_le_bytes());
        out.extend(self.data_len.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.inode.0.to_le_bytes());
        out.extend(self.device.to_le_bytes());
        out.extend([0; 12]);
        out.extend(self.cluster.0.to_le_bytes());
        out.extend(self.cluster_sectors.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
    }
}

/// Bytes of the core in the log, and of version 3 on the disk.
pub const LOG_CORE_LEN: usize = 176;

/// Numbers of the core, all but the times: offset and width. Byte fields and the identifier of the
/// volume stay as they are.
const NUMBERS: [(usize, usize); 23] = [
    (0, 2),
    (at::MODE, 2),
    (at::METATYPE, 2),
    (at::UID, 4),
    (at::GID, 4),
    (at::NLINK, 4),
    (at::PROJECT_LOW, 2),
    (at::PROJECT_HIGH, 2),
    (at::BIG_NEXTENTS, 8),
    (at::SIZE, 8),
    (at::NBLOCKS, 8),
    (at::EXTSIZE, 4),
    (at::NEXTENTS, 4),
    (at::ANEXTENTS, 2),
    (at::DM_EVENT_MASK, 4),
    (at::DM_STATE, 2),
    (at::FLAGS, 2),
    (at::GENERATION, 4),
    (at::NEXT_UNLINKED, 4),
    (at::CHANGECOUNT, 8),
    (at::FLAGS2, 8),
    (at::COWEXTSIZE, 4),
    (at::INO, 8),
];

/// Times of the core: one number of 64 bits, or two of 32.
const TIMES: [usize; 4] = [at::ATIME, at::MTIME, at::CTIME, at::CRTIME];

/// The other byte order of a core; `wide_times` if its inode has the wide encoding of times.
fn exchanged(core: &[u8], wide_times: bool) -> [u8; LOG_CORE_LEN] {
    let mut out = [0; LOG_CORE_LEN];
    out.copy_from_slice(&core[..LOG_CORE_LEN]);
    for (offset, width) in NUMBERS {
        out[offset..offset + width].reverse();
    }
    for offset in TIMES {
        for number in out[offset..offset + 8].chunks_exact_mut(if wide_times { 8 } else { 4 }) {
            number.reverse();
        }
    }
    out[at::PADDING].fill(0);
    out
}

/// The core in the log of an inode whose bytes on the disk are `inode`.
///
/// What replay does not take from the log (list pointer, checksum, position) has the values that
/// the kernel writes there.
#[must_use]
pub fn core_to_log(inode: &[u8]) -> [u8; LOG_CORE_LEN] {
    let wide_times = InodeFlags2::from_bits_retain(be64(inode, at::FLAGS2));
    let mut core = exchanged(inode, wide_times.contains(InodeFlags2::BIGTIME));
    core[at::NEXT_UNLINKED..at::NEXT_UNLINKED + 4].fill(0xff);
    core[crate::INODE_CRC_OFFSET..crate::INODE_CRC_OFFSET + 4].fill(0);
    core[at::LSN..at::LSN + 8].fill(0);
    core
}

/// Writes a core from the log over the one at the start of `inode`, which keeps its list pointer,
/// checksum and position. Older kernels write shorter cores; fields that they leave out are zero.
///
/// # Errors
/// The core has an impossible length, or the magic number is wrong.
pub fn core_from_log(region: &[u8], inode: &mut [u8]) -> Result<(), FieldDefect> {
    let rule = Rule::AtMost(LOG_CORE_LEN as u64);
    FieldDefect::unless(region.len() <= LOG_CORE_LEN, "length of core", region.len() as u64, rule)?;
    check_at_least(region, 2)?;
    let magic = le16(region, 0);
    let rule = Rule::Equal(crate::INODE_MAGIC.into());
    FieldDefect::unless(magic == crate::INODE_MAGIC, "di_magic", magic, rule)?;
    let mut core = [0; LOG_CORE_LEN];
    core[..region.len()].copy_from_slice(region);
    let flags2 = InodeFlags2::from_bits_retain(le64(&core, at::FLAGS2));
    let mut core = exchanged(&core, flags2.contains(InodeFlags2::BIGTIME));
    for kept in [at::NEXT_UNLINKED..at::NEXT_UNLINKED + 8, at::LSN..at::LSN + 8] {
        core[kept.clone()].copy_from_slice(&inode[kept]);
    }
    inode[..LOG_CORE_LEN].copy_from_slice(&core);
    Ok(())
}

/// Bytes of the header of the image of a tree's root: that of a block of the tree.
const ROOT_HEADER: usize = 72;

/// The image of the root of a fork's tree in the log: a block of the tree that has room for just
/// the entries it holds.
#[must_use]
pub fn root_to_log(root: &BmapRoot, inode: InodeNumber, uuid: &Uuid) -> Vec<u8> {
    let count = root.len();
    let mut image = vec![0; ROOT_HEADER + 16 * count];
    image[..4].copy_from_slice(b"BMA3");
    put_be16(&mut image, 4, root.level());
    put_be16(&mut image, 6, count as u16);
    // No siblings, and no address.
    image[8..32].fill(0xff);
    image[40..56].copy_from_slice(uuid.as_bytes());
    put_be64(&mut image, 56, inode.0);
    for (entry, (key, pointer)) in root.entries().enumerate() {
        put_be64(&mut image, ROOT_HEADER + 8 * entry, key.0);
        put_be64(&mut image, ROOT_HEADER + 8 * (count + entry), pointer.0);
    }
    image
}

/// Writes the root of a fork's tree from its image in the log into the fork.
///
/// # Errors
/// The image is not one, or its entries do not fit the fork.
pub fn root_from_log(image: &[u8], fork: &mut [u8]) -> Result<(), FieldDefect> {
    check_at_least(image, ROOT_HEADER)?;
    let room = (image.len() - ROOT_HEADER) / 16;
    let capacity = fork.len().saturating_sub(BmapRoot::HEADER_LEN) / 16;
    let (level, count) = (be16(image, 4), be16(image, 6));
    let rule = Rule::AtMost(room.min(capacity) as u64);
    let sound = usize::from(count) <= room.min(capacity);
    FieldDefect::unless(sound, "entries of the root", count, rule)?;
    FieldDefect::unless(level > 0, "level of the root", level, Rule::AtLeast(1))?;
    put_be16(fork, BmapRoot::LEVEL, level);
    put_be16(fork, BmapRoot::NUMRECS, count);
    let bytes = 8 * usize::from(count);
    let (keys, pointers) = (ROOT_HEADER, ROOT_HEADER + 8 * room);
    let at = BmapRoot::HEADER_LEN;
    fork[at..at + bytes].copy_from_slice(&image[keys..keys + bytes]);
    let at = BmapRoot::HEADER_LEN + 8 * capacity;
    fork[at..at + bytes].copy_from_slice(&image[pointers..pointers + bytes]);
    Ok(())
}

/// List pointer of an inode, which items of its buffer change.
pub const NEXT_UNLINKED_OFFSET: usize = at::NEXT_UNLINKED;
/// Position of the last change of an inode.
pub const INODE_LSN_OFFSET: usize = at::LSN;
