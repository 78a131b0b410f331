//! On-disk structures: bytes only, no I/O. One file per structure.

mod features;
mod kind;

pub use features::{Features, Features2, Incompat, RoCompat, VersionBits};
pub use kind::{BufferKind, TreeKind};
