//! On-disk structures: bytes only, no I/O. One file per structure.

mod ag_header;
pub mod agf;
pub mod agfl;
pub mod agi;
pub mod checksum;
mod features;
mod file_type;
mod inode_core;
mod inode_flags;
mod inode_verify;
mod kind;
mod timestamps;
pub mod log_record;
pub mod superblock;
mod tree_height;

pub use ag_header::{HeaderError, TreeRoot};
pub use agf::Agf;
pub use agi::Agi;
pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use file_type::{DeviceNumber, FileType};
pub use inode_core::{
    ForkFormat, INODE_CRC_OFFSET, INODE_MAGIC, InodeCore, NLINK_PINNED, inode_crc,
    inode_crc_matches, stamp_inode_crc,
};
pub use inode_flags::{InodeFlags, InodeFlags2};
pub use kind::{BufferKind, TreeKind};
pub use timestamps::{Timestamp, TimestampEncoding, TimestampError};

#[cfg(test)]
pub(crate) mod inode_tests;
pub use log_record::LogRecordHeader;
pub use superblock::{Superblock, SuperblockError};
pub use tree_height::TreeHeights;
