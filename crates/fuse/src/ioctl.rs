//! Flags and hints of files in the form of `ioctl(2)`, as `chattr`, `lsattr` and `xfs_io` use it.
//!
//! There are two forms: a word of flags that all Linux file systems share (`ioctl_iflags(2)`), and a
//! structure of 28 bytes that came from XFS (`ioctl_xfs_fsgetxattr(2)`).

use undercroft_fs::{InodeFlags, Metadata};

/// Asks for the word of flags.
pub const GET_FLAGS: u32 = 0x8008_6601;
/// Sets the word of flags.
pub const SET_FLAGS: u32 = 0x4008_6602;
/// Asks for the structure.
pub const GET_XATTR: u32 = 0x801c_581f;
/// Sets what the structure says.
pub const SET_XATTR: u32 = 0x401c_5820;

/// Gives free space back to the device, as `fstrim` asks for it: a structure of three words of 64 bits, in
/// bytes. They are where it starts, how long it is (and how much was given back), and the shortest extent.
pub const TRIM: u32 = 0xc018_5879;

/// The words of the structure that [`TRIM`] has; `None` if there are too few bytes.
pub(crate) fn decode_trim(bytes: &[u8]) -> Option<[u64; 3]> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some([word(0)?, word(8)?, word(16)?])
}

/// Flags of the word and of inodes that mean the same.
const WORD: [(u32, InodeFlags); 6] = [
    (0x0000_0008, InodeFlags::SYNC),
    (0x0000_0010, InodeFlags::IMMUTABLE),
    (0x0000_0020, InodeFlags::APPEND),
    (0x0000_0040, InodeFlags::NODUMP),
    (0x0000_0080, InodeFlags::NOATIME),
    (0x2000_0000, InodeFlags::PROJINHERIT),
];

/// Flags of the structure that have the value of an inode's flag, and can be asked for.
const SHARED: u32 = 0x7fff;
/// The structure's flag that the data lies on a real-time device.
const REALTIME: u32 = 0x1;
/// The structure's flag that new space has a size.
const EXTENT_SIZE: u32 = 0x800;
/// The same, of a directory, for files made in it.
const EXTENT_SIZE_INHERIT: u32 = 0x1000;
/// The structure's flag that asks for direct access to persistent memory.
const DIRECT_ACCESS: u32 = 0x8000;
/// The word's flag for it.
const WORD_DIRECT_ACCESS: u32 = 0x0200_0000;
/// The structure's flag that copies of shared blocks have a size.
const COPY_EXTENT_SIZE: u32 = 0x1_0000;

/// Flags and hints of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFlags {
    /// The structure's flags.
    pub flags: u32,
    /// New space is taken in multiples of this, in bytes.
    pub extent_size: u32,
    /// Extents that the file has.
    pub extents: u32,
    /// Project.
    pub project: u32,
    /// Shared blocks are copied in multiples of this, in bytes.
    pub copy_extent_size: u32,
}

impl FileFlags {
    /// Bytes of the structure.
    pub const LEN: usize = 28;

    /// Flags that are not the file system's own.
    const SETTABLE: u32 = 0x10 | 0x8 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x2000 | 0x4000;

    /// Of a file that has `extents` extents.
    #[must_use]
    pub fn of(metadata: &Metadata, extents: u32) -> Self {
        let copies = if metadata.copy_extent_size > 0 { COPY_EXTENT_SIZE } else { 0 };
        let direct = if metadata.direct_access { DIRECT_ACCESS } else { 0 };
        let hint = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self {
            flags: u32::from(metadata.flags.bits()) & SHARED | copies | direct,
            extent_size: hint(metadata.extent_size),
            extents,
            project: metadata.project,
            copy_extent_size: hint(metadata.copy_extent_size),
        }
    }

    /// From the bytes of the structure; `None` if they are too few.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, _) = bytes.split_first_chunk::<{ Self::LEN }>()?;
        let word = |index: usize| {
            let at = index * 4;
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self {
            flags: word(0),
            extent_size: word(1),
            extents: word(2),
            project: word(3),
            copy_extent_size: word(4),
        })
    }

    /// The bytes of the structure.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words =
            [self.flags, self.extent_size, self.extents, self.project, self.copy_extent_size];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The flags that the inode gets.
    #[must_use]
    pub fn inode_flags(&self) -> InodeFlags {
        // Sixteen bits at most.
        InodeFlags::from_bits_truncate((self.flags & Self::SETTABLE) as u16)
    }

    /// Whether the data is to lie on a real-time device.
    #[must_use]
    pub fn wants_realtime(&self) -> bool {
        self.flags & REALTIME != 0
    }

    /// Whether direct access to persistent memory is asked for.
    #[must_use]
    pub fn wants_direct_access(&self) -> bool {
        self.flags & DIRECT_ACCESS != 0
    }

    /// The hint for new space: 0 if the flag for it is not there.
    #[must_use]
    pub fn wanted_extent_size(&self) -> u64 {
        let is_set = self.flags & (EXTENT_SIZE | EXTENT_SIZE_INHERIT) != 0;
        if is_set { self.extent_size.into() } else { 0 }
    }

    /// The hint for copies: 0 if the flag for it is not there.
    #[must_use]
    pub fn wanted_copy_extent_size(&self) -> u64 {
        if self.flags & COPY_EXTENT_SIZE != 0 { self.copy_extent_size.into() } else { 0 }
    }
}

/// The word of flags of an inode's flags, and of whether it asks for direct access.
#[must_use]
pub fn word_of(flags: InodeFlags, direct_access: bool) -> u32 {
    let direct = if direct_access { WORD_DIRECT_ACCESS } else { 0 };
    WORD.iter().filter(|(_, flag)| flags.contains(*flag)).map(|(bit, _)| bit).sum::<u32>() | direct
}

/// The flags of an inode that has `old` when the word is set, and whether it asks for direct access;
/// `None` if it has flags that XFS does not know. Flags without a place in the word stay.
#[must_use]
pub fn flags_of(word: u32, old: InodeFlags) -> Option<(InodeFlags, bool)> {
    let known: u32 = WORD.iter().map(|(bit, _)| bit).sum();
    if word & !(known | WORD_DIRECT_ACCESS) != 0 {
        return None;
    }
    let mut flags = old;
    for (bit, flag) in WORD {
        flags.set(flag, word & bit != 0);
    }
    Some((flags, word & WORD_DIRECT_ACCESS != 0))
}

/// The word at the start of the bytes of a request; `None` if they are too few.
#[must_use]
pub fn decode_word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_read_as_it_is_written() {
        let flags = FileFlags {
            flags: 0x8 | EXTENT_SIZE | COPY_EXTENT_SIZE,
            extent_size: 65_536,
            extents: 3,
            project: 42,
            copy_extent_size: 4096,
        };
        assert_eq!(FileFlags::decode(&flags.encode()), Some(flags));
        assert_eq!(FileFlags::decode(&flags.encode()[..27]), None);
        assert_eq!(flags.inode_flags(), InodeFlags::IMMUTABLE);
        assert_eq!(flags.wanted_extent_size(), 65_536);
        assert_eq!(FileFlags { flags: 0, ..flags }.wanted_extent_size(), 0);
    }

    #[test]
    fn words_change_only_the_flags_that_they_have() {
        let old = InodeFlags::NODEFRAG | InodeFlags::APPEND;
        let new = flags_of(0x10, old);
        assert_eq!(new, Some((InodeFlags::NODEFRAG | InodeFlags::IMMUTABLE, false)));
        assert_eq!(word_of(InodeFlags::IMMUTABLE | InodeFlags::NODEFRAG, false), 0x10);
        assert_eq!(flags_of(0x0200_0000, InodeFlags::SYNC), Some((InodeFlags::empty(), true)));
        assert_eq!(word_of(InodeFlags::empty(), true), 0x0200_0000);
        assert_eq!(flags_of(0x4000, old), None, "a flag of ext4");
    }
}
