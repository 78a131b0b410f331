//! The block layer of Undercroft: what stands between a file system and a disk, as a library.
//!
//! ```text
//! bio -> stacked devices (map) -> plug (sort, merge) -> request -> queue -> driver
//!  ^                                                                          |
//!  +------------------------------ completion --------------------------------+
//! ```
//!
//! A caller makes [`Bio`]s, each owning its memory, and submits them through a [`Plug`] to a
//! [`BlockDevice`]. A stacked device maps them to those below; at the leaves the plug merges them
//! into [`Request`]s for the queue of a [`Driver`]. Every bio is answered once: to a callback, a
//! [`Waiter`] for one bio, or a [`Batch`] for many. Devices know nothing of file systems.
//!
//! ```
//! use std::sync::Arc;
//! use undercroft_block::{Batch, Bio, BlockDevice, Buffer, MemoryDevice, Plug, Sector};
//! use undercroft_block::read_exact_at;
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 20));
//! let batch = Batch::new();
//! let plug = Plug::new(&disk);
//! for sector in [1, 0] {
//!     plug.submit(Bio::write(Sector(sector), Buffer::copy_of(&[7; 512])).in_batch(&batch));
//! }
//! batch.wait()?; // flushes the plug of this thread: one request for both
//!
//! let mut bytes = [0; 1024];
//! read_exact_at(&*disk, Sector(0), &mut bytes)?;
//! assert_eq!(bytes, [7; 1024]);
//! assert_eq!(disk.statistics().requests, 2);
//! # Ok::<(), undercroft_block::BlockError>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// The rooms, ground floor first: each uses only those on the floors before it.

mod threads;
mod units;

mod affinity;
mod memory;

mod bio;
pub mod experiments;

mod request;

mod driver;
mod statistics;

mod device;

mod plug;
mod queue;

mod drivers;

pub mod stack;

pub mod partition;
pub mod testing;

pub use affinity::{CpuSet, ParseCpuSetError, Topology};
pub use bio::{
    Batch, Bio, BlockError, Completion, CompletionFuture, CompletionQueue, FailedBio, FileRange,
    Finished, FirstErrorHandler, Operation, Reason, SharedRead, Splice, Waiter,
};
pub use device::{
    Below, BlockDevice, Claim, Layer, Part, RequestQueue, Reservations, Reserved, Stacked,
};
pub use driver::{
    Bell, Completer, Completions, Driver, DriverQueue, Holder, OpenError, QueueContext,
    Synchronous, Taken, Wait,
};
pub use drivers::{
    Engine, Exclusive, Fallback, FileDevice, FileOptions, MemoryDevice, MemoryDriver, NullDevice,
    NullDriver, NullOptions, NullQueue, Unchanging, announce_fallback, mounted_at,
};
pub use memory::{BUFFER_ALIGNMENT, Buffer, BufferPool, Segment, SegmentList, is_zero};
pub use plug::{
    Plug, PlugThreshold, flush, flush_thread as flush_plugs, read_buffer, read_exact_at, read_into,
    splice_at, splice_target, write_all_at, write_zeroes_at,
};
pub use queue::{Drive, Leaf, QueueOptions};
pub use request::{Failure, Request, RequestList};
pub use stack::window::Window;
pub use statistics::{Latencies, QueueLatencies, QueueName, QueueReport, Statistics};
pub use threads::own_queues::drives_queues;
pub use undercroft_tags::prepare_process;
pub use units::{Limits, SECTOR_SIZE, Sector};
