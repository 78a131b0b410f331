//! File types as the mode of an inode holds them, and device numbers.

/// Mask of the file type in a mode.
const TYPE_MASK: u16 = 0o170_000;

/// What kind of file an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileType {
    /// Named pipe.
    Fifo,
    /// Character device.
    Character,
    /// Directory.
    Directory,
    /// Block device.
    Block,
    /// Regular file.
    Regular,
    /// Symbolic link.
    Symlink,
    /// Socket.
    Socket,
}

impl FileType {
    /// The type a mode names; `None` for a free inode (mode 0) and for unknown types.
    #[must_use]
    pub const fn from_mode(mode: u16) -> Option<Self> {
        Some(match mode & TYPE_MASK {
            0o010_000 => Self::Fifo,
            0o020_000 => Self::Character,
            0o040_000 => Self::Directory,
            0o060_000 => Self::Block,
            0o100_000 => Self::Regular,
            0o120_000 => Self::Symlink,
            0o140_000 => Self::Socket,
            _ => return None,
        })
    }

    /// Its bits in a mode.
    #[must_use]
    pub const fn mode_bits(self) -> u16 {
        match self {
            Self::Fifo => 0o010_000,
            Self::Character => 0o020_000,
            Self::Directory => 0o040_000,
            Self::Block => 0o060_000,
            Self::Regular => 0o100_000,
            Self::Symlink => 0o120_000,
            Self::Socket => 0o140_000,
        }
    }

    /// Whether the data fork holds a device number (zero for pipes and sockets) instead of data.
    #[must_use]
    pub const fn is_special(self) -> bool {
        matches!(self, Self::Fifo | Self::Character | Self::Block | Self::Socket)
    }
}

/// A device number as the format stores it: 14 bits major, 18 bits minor
/// (docs/format/inodes.md#device-numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceNumber {
    /// Driver, below 2^14.
    pub major: u32,
    /// Device of the driver, below 2^18.
    pub minor: u32,
}

impl DeviceNumber {
    /// Decodes the word at the start of a device inode's data fork.
    #[must_use]
    pub const fn decode(raw: u32) -> Self {
        Self { major: raw >> 18, minor: raw & 0x3_ffff }
    }

    /// The word to store; `None` if a part has more bits than the format.
    #[must_use]
    pub const fn encode(self) -> Option<u32> {
        if self.major >> 14 != 0 || self.minor >> 18 != 0 {
            return None;
        }
        Some(self.major << 18 | self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_match_the_reference() {
        for (major, minor, raw) in [(1, 3, 0x0004_0003), (259, 70_000, 0x040d_1170)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(number.encode(), Some(raw));
            assert_eq!(DeviceNumber::decode(raw), number);
        }
        assert_eq!(DeviceNumber { major: 1 << 14, minor: 0 }.encode(), None);
        assert_eq!(DeviceNumber { major: 0, minor: 1 << 18 }.encode(), None);
    }

    #[test]
    fn types_and_modes_agree() {
        for mode in 0..=u16::MAX {
            if let Some(kind) = FileType::from_mode(mode) {
                assert_eq!(kind.mode_bits(), mode & TYPE_MASK);
            }
        }
        assert_eq!(FileType::from_mode(0o755), None);
    }
}
