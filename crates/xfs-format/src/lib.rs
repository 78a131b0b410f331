//! The on-disk format of XFS: bytes decoded, encoded and verified, and nothing else. There is no I/O
//! here and no state, so that parsers, forensic tools and file systems can share it.
//!
//! - [`Superblock`] describes a volume; [`Geometry`] follows from it, and everything else needs it.
//! - The headers of an allocation group, [`Agf`], [`Agi`] and its free list.
//! - Blocks, records and keys of all trees ([`TreeGeometry`], [`RmapRecord`], ...).
//! - [`InodeCore`], with its flags and times, and what forks of inodes hold, in the inode or in
//!   blocks: directories ([`dir_data`], ...), attributes ([`AttrLeafLayout`], ...), and the tree of
//!   hashes that both share ([`da_block`]).
//! - Records of the journal ([`log_record`]), and the items in them ([`BufferItem`], [`Intent`], ...).
//!
//! Every structure is one file with its name; docs/format/README.md describes them. Decoding is
//! total: any bytes give a value or an error that names the field, its value and the rule that it
//! breaks.
//!
//! ```
//! use undercroft_xfs_format::{Superblock, SuperblockError};
//!
//! let bytes = [0; 512];
//! assert!(matches!(Superblock::decode(&bytes), Err(SuperblockError::Magic { found: 0 })));
//! ```
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each imports only from floors above it in this list, which
// `cargo xtask test` checks.

// Ground: bytes, numbers, words of errors.
pub mod bytes;
mod defect;
mod features;
mod kind;
pub mod units;

// Sizes that follow from a superblock, and checksums.
pub mod checksum;
pub mod geometry;

// The header that most blocks have, and inodes.
mod header;
mod inode;

// Blocks of trees and of hash trees.
mod btree;
mod hash_tree;

// Structures of groups and forks.
mod directory;
mod group;
mod remote;

// Attributes, whose values may have blocks of their own; the superblock, which counts groups.
mod attribute;
pub mod superblock;

// The contents of any block, and of the journal.
mod content;
mod log;

// Sizes, checked when this is compiled.
mod sizes;

#[cfg(any(test, feature = "testing"))]
pub use inode::samples;

pub use attribute::{
    ATTR_ENTRY_SIZE, ATTR_NAME_MAX, ATTR_REMOTE_MAGIC, ATTR_VALUE_MAX, Acl, AclEntry, AclError,
    AclKind, AclTag, AttrFlags, AttrItem, AttrLeafEntry, AttrLeafLayout, AttrShortform, AttrValue,
    Namespace, PARENT_VALUE_SIZE, SHORTFORM_COUNT_MAX, SHORTFORM_HEADER, SHORTFORM_PART_MAX,
    ShortformBuilder, ShortformEntry, attr_remote_blocks, attr_remote_part, attr_remote_payload,
    local_item_size, remote_item_size, shortform_entry_size, verify_attr_leaf, verify_attr_name,
    verify_attr_remote, write_attr_remote,
};
pub use btree::{
    AllocRecord, BmapRoot, Extent, HeaderLayout, HeightLimit, InodeChunkRecord, MAX_TREE_HEIGHT,
    NewHeader, RefcountDomain, RefcountKey, RefcountRecord, RmapFlags, RmapKey, RmapOwner,
    RmapRecord, TreeGeometry, TreeHeights, block_capacity, verify_tree_block,
};
pub use content::verify_content_of;
pub use defect::{FieldDefect, Rule};
pub use directory::{
    EntryType, block as dir_block, data as dir_data, free as dir_free, layout as dir_layout,
    leaf as dir_leaf, name_defect, pairs as dir_pairs, shortform as dir_shortform,
};
pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use geometry::Geometry;
pub use group::{Agf, Agi, Counters, HeaderError, TreeRoot, agf, agfl, agi};
pub use hash_tree::{block as da_block, name_hash};
pub use header::{Header, HeaderFields};
pub use inode::{
    DeviceNumber, FileType, ForkFormat, INODE_CRC_OFFSET, INODE_GENERATION_OFFSET, INODE_MAGIC,
    InodeCore, InodeFlags, InodeFlags2, NLINK_MAX, NLINK_PINNED, Timestamp, TimestampEncoding,
    TimestampError, inode_crc_matches, stamp_inode_crc,
};
pub use kind::{BufferKind, TreeKind};
pub use log::{
    Assembly, AttrAction, AttrChange, BufferItem, BufferItemFlags, BufferItemType, Exchange,
    ExchangeFlags, ExchangeSide, ExtentChange, INODE_LSN_OFFSET, InodeCreateItem, InodeItem,
    InodeItemFields, Intent, IntentDevice, IntentDone, IntentWork, JournalDefect, LOG_CORE_LEN,
    LogClient, LogItem, LogItemKind, LogRecordHeader, LoggedTransaction, MappingAction,
    MappingChange, NEXT_UNLINKED_OFFSET, NameValue, OperationFlags, OperationHeader, QuotaItem,
    RefcountAction, RefcountChange, ReverseAction, ReverseChange, TransactionHeader, core_from_log,
    core_to_log, record as log_record, record_seal as log_record_seal, root_from_log, root_to_log,
};
pub use remote::{
    SYMLINK_MAGIC, SYMLINK_MAX, symlink_blocks, symlink_part, symlink_payload, verify_symlink,
    write_symlink,
};
pub use superblock::{Superblock, SuperblockError};
