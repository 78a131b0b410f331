//! On-disk structures: bytes only, no I/O. One file per structure.

pub mod da_block;
pub mod dir_block;
pub mod dir_data;
pub mod dir_free;
pub mod dir_layout;
pub mod dir_leaf;
pub mod dir_pairs;
pub mod dir_shortform;
mod features;
mod file_type;
mod kind;
pub mod name_hash;

pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use file_type::FileType;
pub use kind::{BufferKind, TreeKind};
