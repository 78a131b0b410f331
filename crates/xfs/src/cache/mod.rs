//! Metadata buffers in memory: read and verify, keep, write back.
//!
//! A buffer is verified when it is read and again before it is written
//! (docs/decisions/cache.md#verification-of-buffers).
//! The right to change a buffer is decided by the locks of groups and inodes, not here. Memory is
//! bounded. When too much is dirty, buffers that were not used lately are written. When too much is
//! kept, clean buffers that are not held are dropped (`sweep`). Buffers that are needed soon can be
//! read ahead (`prefetch`), and tasks can wait for them instead of threads (`attempt`).

mod attempt;
mod buffer;
mod last_used;
mod open_buffers;
mod prefetch;
mod shard;
mod sweep;
mod sweep_schedule;
mod table;
mod verify;
mod write_back;
mod written_buffer;

pub(crate) use crate::address::BufferAddress;
pub(crate) use attempt::{Attempts, wait_from_here};
pub(crate) use buffer::Content;
pub(crate) use buffer::{BufferRef, EditGuard, MetaBuffer, ReadGuard};
pub(crate) use last_used::LastUsed;
pub(crate) use table::Cache;
pub(crate) use verify::{stamp, verify_content as verify_buffer};
pub(crate) use written_buffer::WrittenBuffer;
