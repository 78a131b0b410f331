//! Memory for I/O: allocated, shared, cut into buffers and segments, and used again.

mod allocation;
#[allow(dead_code, reason = "for rings")]
mod arena;
mod buffer;
mod pool;
mod recycled;
mod region;
mod segment;
mod zero;

pub use allocation::BUFFER_ALIGNMENT;
pub(crate) use arena::Arena;
pub use buffer::Buffer;
pub use pool::BufferPool;
pub(crate) use recycled::{Recycle, Recycled, Spares};
pub use segment::{Segment, SegmentList};
pub(crate) use segment::{gather, is_aligned};
pub use zero::is_zero;
