//! One part of the table of buffers.

use super::buffer::BufferRef;
use crossbeam_utils::CachePadded;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use undercroft_block::Sector;

/// Independent parts of the table of buffers, so that threads seldom meet.
pub(super) const SHARDS: usize = 64;

/// A part of the table, on cache lines of its own.
pub(super) type Shard = CachePadded<RwLock<Part>>;

/// The buffers of a part.
#[derive(Default)]
pub(super) struct Part {
    pub(super) buffers: FxHashMap<Sector, BufferRef>,
    /// How often buffers went that had been changed since they were read.
    pub(super) evictions: u64,
}
