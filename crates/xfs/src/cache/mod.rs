//! Metadata buffers in memory: read and verify, change, write back.

mod buffer;

pub(crate) use buffer::Content;
pub use buffer::{BufferAddress, BufferRef, EditGuard, MetaBuffer, ReadGuard};
