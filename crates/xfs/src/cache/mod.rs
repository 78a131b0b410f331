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
mod in_place;
mod opened;
mod prefetch;
mod recent;
mod shard;
mod sweep;
mod sweep_schedule;
mod table;
mod verify;
mod write_back;

pub(crate) use crate::address::BufferAddress;
pub(crate) use attempt::{Attempts, wait_from_here};
pub(crate) use buffer::Content;
pub(crate) use buffer::{BufferRef, EditGuard, MetaBuffer, ReadGuard};
pub(crate) use in_place::InPlace;
pub(crate) use recent::Recent;
pub(crate) use table::Cache;
pub(crate) use verify::{stamp, verify_content as verify_buffer};
