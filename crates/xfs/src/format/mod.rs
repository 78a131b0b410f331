//! On-disk structures: bytes only, no I/O. One file per structure.

mod acl;
mod acl_text;
mod ag_header;
pub mod agf;
pub mod agfl;
pub mod agi;
mod attr_leaf;
mod attr_leaf_edit;
mod attr_name;
mod attr_remote;
mod attr_shortform;
pub mod checksum;
mod content;
mod counters;
pub mod da_block;
pub mod dir_block;
pub mod dir_data;
pub mod dir_free;
pub mod dir_layout;
pub mod dir_leaf;
pub mod dir_pairs;
pub mod dir_shortform;
mod entry_type;
mod features;
mod file_type;
mod header;
mod inode_core;
mod inode_flags;
mod inode_verify;
mod kind;
mod log_buffer_item;
mod log_create_item;
mod log_inode_item;
mod log_intent;
mod log_intent_attr;
mod log_intent_exchange;
mod log_intent_space;
mod log_item;
mod log_operation;
mod log_quota_item;
pub mod log_record;
pub mod log_record_seal;
#[cfg(test)]
mod log_sample_tests;
pub mod name_hash;
mod remote_header;
pub mod superblock;
mod symlink_block;
mod timestamps;
mod tree_height;

pub use acl::{Acl, AclEntry, AclError, AclKind, AclTag};
pub use ag_header::{HeaderError, TreeRoot};
pub use agf::Agf;
pub use agi::Agi;
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
pub use content::verify_content_of;
pub(crate) use counters::Counters;
pub use entry_type::EntryType;
pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use file_type::{DeviceNumber, FileType};
pub use header::{Header, HeaderFields};
pub use inode_core::{
    ForkFormat, INODE_CRC_OFFSET, INODE_GENERATION_OFFSET, INODE_MAGIC, InodeCore, NLINK_MAX,
    NLINK_PINNED, inode_crc_matches, stamp_inode_crc,
};
pub use inode_flags::{InodeFlags, InodeFlags2};
pub use kind::{BufferKind, TreeKind};
pub use symlink_block::{
    SYMLINK_MAGIC, SYMLINK_MAX, symlink_blocks, symlink_part, symlink_payload, verify_symlink,
    write_symlink,
};
pub use timestamps::{Timestamp, TimestampEncoding, TimestampError};

#[cfg(test)]
pub(crate) mod inode_tests;
pub use log_buffer_item::{BufferItem, BufferItemFlags, BufferItemType};
pub use log_create_item::InodeCreateItem;
pub use log_inode_item::{
    INODE_LSN_OFFSET, InodeItem, InodeItemFields, LOG_CORE_LEN, NEXT_UNLINKED_OFFSET,
    core_from_log, core_to_log, root_from_log, root_to_log,
};
pub use log_intent::{Intent, IntentDevice, IntentDone, IntentWork};
pub use log_intent_attr::{AttrAction, AttrChange, NameValue};
pub use log_intent_exchange::{Exchange, ExchangeFlags, ExchangeSide};
pub use log_intent_space::{
    ExtentChange, MappingAction, MappingChange, RefcountAction, RefcountChange, ReverseAction,
    ReverseChange,
};
pub use log_item::LogItemKind;
pub use log_operation::{LogClient, OperationFlags, OperationHeader, TransactionHeader};
pub use log_quota_item::QuotaItem;
pub use log_record::LogRecordHeader;
pub use superblock::{Superblock, SuperblockError};
pub use tree_height::TreeHeights;
mod alloc_record;
mod bmap_record;
mod bmap_root;
mod btree_block;
mod btree_verify;
mod inode_record;
mod refcount_record;
mod rmap_record;

pub use alloc_record::AllocRecord;
pub use bmap_record::Extent;
pub use bmap_root::BmapRoot;
pub use btree_block::{
    FieldDefect, HeaderLayout, HeightLimit, MAX_TREE_HEIGHT, NewHeader, Rule, TreeGeometry,
    block_capacity,
};
pub use btree_verify::verify_tree_block;
pub use inode_record::InodeChunkRecord;
pub use refcount_record::{RefcountDomain, RefcountKey, RefcountRecord};
pub use rmap_record::{RmapFlags, RmapKey, RmapOwner, RmapRecord};
