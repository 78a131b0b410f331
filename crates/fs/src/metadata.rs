//! The metadata of a file.

use undercroft_xfs::Volume;
use undercroft_xfs::format::{DeviceNumber, FileType, InodeFlags, InodeFlags2, Timestamp};
use undercroft_xfs::inode::{ForkContent, InodeState};
use undercroft_xfs::units::InodeNumber;

/// Bytes of the unit in which programs count the space of files.
const UNIT_LOG: u8 = 9;

/// Permission bits in a mode, with setuid, setgid and sticky.
const PERMISSIONS: u16 = 0o7777;

/// The metadata of a file, as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Number of the inode.
    pub number: InodeNumber,
    /// Generation: of all files there ever are on the volume, one has this number and this
    /// generation.
    pub generation: u32,
    /// Kind of file.
    pub kind: FileType,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u16,
    /// Names that it has; of a directory, 2 and one for each directory in it.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Space in units of 512 bytes, as `st_blocks` has it: blocks allocated, and blocks reserved
    /// for data in memory.
    pub blocks: u64,
    /// Bytes of a block of the volume.
    pub block_size: u32,
    /// Last access.
    pub accessed: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of the inode.
    pub changed: Timestamp,
    /// Birth.
    pub created: Timestamp,
    /// Number of a device, 0:0 for everything else.
    pub device: DeviceNumber,
    /// Project.
    pub project: u32,
    /// First flag word.
    pub flags: InodeFlags,
    /// Direct access to persistent memory is asked for (DAX).
    pub direct_access: bool,
    /// New space of the file is taken in multiples of this, in bytes; 0: no hint. Of a directory,
    /// the hint that it hands down.
    pub extent_size: u64,
    /// Shared blocks are copied in multiples of this before one changes, in bytes; 0: no hint.
    pub copy_extent_size: u64,
}

impl Metadata {
    /// Of an inode that is locked.
    pub(crate) fn of(volume: &Volume, inode: &InodeState) -> Self {
        let (core, geometry) = (&inode.core, volume.geometry());
        // The reservation contains room for the tree of the mapping, which most files never need.
        let promised = inode.reserved_ahead().saturating_sub(volume.heights().bmap_data.into());
        let blocks = core.nblocks.saturating_add(promised);
        let device = match &inode.data.content {
            ForkContent::Device(device) => *device,
            _ => DeviceNumber { major: 0, minor: 0 },
        };
        let bytes = |blocks: u32| u64::from(blocks) << geometry.block_log;
        Self {
            number: inode.number,
            generation: core.generation,
            kind: inode.file_type(),
            mode: core.mode & PERMISSIONS,
            nlink: core.nlink,
            uid: core.uid,
            gid: core.gid,
            size: core.size,
            blocks: blocks << (geometry.block_log - UNIT_LOG),
            // At most 64 KiB.
            block_size: geometry.block_size() as u32,
            accessed: core.atime,
            modified: core.mtime,
            changed: core.ctime,
            created: core.crtime,
            device,
            project: core.project,
            flags: core.flags,
            direct_access: core.flags2.contains(InodeFlags2::DAX),
            extent_size: bytes(core.extsize),
            copy_extent_size: bytes(core.cowextsize),
        }
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileType::Regular
    }

    /// Whether it is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.kind == FileType::Symlink
    }

    /// Kind and permissions, as `st_mode` has them.
    #[must_use]
    pub fn full_mode(&self) -> u16 {
        self.kind.mode_bits() | self.mode
    }
}
