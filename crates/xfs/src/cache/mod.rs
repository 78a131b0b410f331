//! Metadata buffers in memory: read and verify, change, write back.

mod buffer;

pub use buffer::{BufferAddress, BufferRef, EditGuard, MetaBuffer, ReadGuard};
pub(crate) use buffer::Content;
