//! On-disk structures: bytes only, no I/O. One file per structure.

mod ag_header;
pub mod agf;
pub mod agfl;
pub mod agi;
pub mod checksum;
mod features;
mod kind;
pub mod log_record;
pub mod superblock;
mod tree_height;

pub use ag_header::{HeaderError, TreeRoot};
pub use agf::Agf;
pub use agi::Agi;
pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use kind::{BufferKind, TreeKind};
pub use log_record::LogRecordHeader;
pub use superblock::{Superblock, SuperblockError};
pub use tree_height::TreeHeights;
