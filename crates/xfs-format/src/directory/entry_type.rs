//! Type of a file as directory entries record it (docs/format/directories.md#types).

use crate::FileType;

/// Type of the file an entry names. Volumes without the feature have only `Unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryType {
    /// Not recorded.
    #[default]
    Unknown = 0,
    /// Regular file.
    Regular = 1,
    /// Directory.
    Directory = 2,
    /// Character device.
    CharDevice = 3,
    /// Block device.
    BlockDevice = 4,
    /// FIFO.
    Fifo = 5,
    /// Socket.
    Socket = 6,
    /// Symbolic link.
    Symlink = 7,
    /// Whiteout of an overlay.
    Whiteout = 8,
}

impl EntryType {
    /// The type of this number, `None` for numbers without a meaning.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Unknown,
            1 => Self::Regular,
            2 => Self::Directory,
            3 => Self::CharDevice,
            4 => Self::BlockDevice,
            5 => Self::Fifo,
            6 => Self::Socket,
            7 => Self::Symlink,
            8 => Self::Whiteout,
            _ => return None,
        })
    }

    /// The kind of file, where the entry says one.
    #[must_use]
    pub const fn file_type(self) -> Option<FileType> {
        Some(match self {
            Self::Regular => FileType::Regular,
            Self::Directory => FileType::Directory,
            Self::CharDevice => FileType::Character,
            Self::BlockDevice => FileType::Block,
            Self::Fifo => FileType::Fifo,
            Self::Socket => FileType::Socket,
            Self::Symlink => FileType::Symlink,
            Self::Unknown | Self::Whiteout => return None,
        })
    }
}

impl From<FileType> for EntryType {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::Regular => Self::Regular,
            FileType::Directory => Self::Directory,
            FileType::Character => Self::CharDevice,
            FileType::Block => Self::BlockDevice,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::Symlink => Self::Symlink,
        }
    }
}
