//! Inodes: the core, its flags and its times. What their forks hold is elsewhere.

pub(crate) mod core;
mod file_type;
mod flags;
#[cfg(any(test, feature = "testing"))]
pub mod samples;
#[cfg(test)]
mod tests;
mod timestamps;
mod verify;

pub use core::{
    ForkFormat, INODE_CRC_OFFSET, INODE_GENERATION_OFFSET, INODE_MAGIC, InodeCore, NLINK_MAX,
    NLINK_PINNED, inode_crc_matches, stamp_inode_crc,
};
pub use file_type::{DeviceNumber, FileType};
pub use flags::{InodeFlags, InodeFlags2};
pub use timestamps::{Timestamp, TimestampEncoding, TimestampError};
