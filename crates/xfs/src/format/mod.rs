//! On-disk structures: bytes only, no I/O. One file per structure.

pub mod da_block;
mod features;
mod kind;
pub mod name_hash;

pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use kind::{BufferKind, TreeKind};
