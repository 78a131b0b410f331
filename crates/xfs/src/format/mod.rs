//! On-disk structures: bytes only, no I/O. One file per structure.

mod kind;

pub use kind::{BufferKind, TreeKind};
