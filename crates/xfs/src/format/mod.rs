//! On-disk structures: bytes only, no I/O. One file per structure.

mod acl;
mod attr_leaf;
mod attr_leaf_edit;
mod attr_name;
mod attr_remote;
mod attr_shortform;
pub mod da_block;
mod features;
mod file_type;
mod inode_core;
mod inode_flags;
mod inode_verify;
mod kind;
pub mod name_hash;
mod remote_header;
mod symlink_block;
mod timestamps;

pub use acl::{Acl, AclEntry, AclError, AclKind, AclTag};
pub use attr_leaf::{
    ATTR_ENTRY_SIZE, AttrLeafEntry, AttrLeafLayout, AttrValue, local_item_size, remote_item_size,
    verify_attr_leaf,
};
pub use attr_leaf_edit::AttrItem;
pub use attr_name::{
    ATTR_NAME_MAX, ATTR_VALUE_MAX, AttrFlags, Namespace, PARENT_VALUE_SIZE, verify_attr_name,
};
pub use attr_remote::{
    ATTR_REMOTE_MAGIC, attr_remote_blocks, attr_remote_part, attr_remote_payload,
    verify_attr_remote, write_attr_remote,
};
pub use attr_shortform::{
    AttrShortform, SHORTFORM_COUNT_MAX, SHORTFORM_HEADER, SHORTFORM_PART_MAX, ShortformBuilder,
    ShortformEntry, shortform_entry_size,
};
pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use file_type::{DeviceNumber, FileType};
pub use inode_core::{
    ForkFormat, INODE_CRC_OFFSET, INODE_MAGIC, InodeCore, NLINK_PINNED, inode_crc,
    inode_crc_matches, stamp_inode_crc,
};
pub use inode_flags::{InodeFlags, InodeFlags2};
pub use kind::{BufferKind, TreeKind};
pub use remote_header::{REMOTE_HEADER_FIELDS, REMOTE_HEADER_SIZE};
pub use symlink_block::{
    SYMLINK_MAGIC, SYMLINK_MAX, symlink_blocks, symlink_part, symlink_payload, verify_symlink,
    write_symlink,
};
pub use timestamps::{Timestamp, TimestampEncoding, TimestampError};

#[cfg(test)]
pub(crate) mod inode_tests;
