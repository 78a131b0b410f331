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

mod affinity;
#[allow(dead_code, reason = "for rings")]
mod arena;
mod batch;
mod bio;
mod buffer;
mod callback;
mod clock;
mod completion_queue;
mod device;
mod driver;
mod drivers;
mod error;
mod future;
pub mod partition;
mod plug;
mod pool;
mod queue;
mod recycled;
mod region;
mod request;
mod sector;
mod segment;
mod sleep;
pub mod stack;
mod statistics;
mod sync;
pub mod testing;
mod timer;
mod waiter;
mod window;

pub use affinity::{
    CompletionPlace, CpuSet, ParseCpuSetError, Placement, QueuePlace, Redirect, RqAffinity,
    Topology,
};
pub use batch::{Alarm, Batch};
pub use bio::{Bio, Completion, Operation};
pub use buffer::{BUFFER_ALIGNMENT, Buffer};
pub use completion_queue::{CompletionQueue, Finished};
pub use device::{
    Below, BlockDevice, Layer, Limits, Stacked, flush, read_buffer, read_exact_at, read_into,
    write_all_at,
};
pub use driver::{Completions, Driver, DriverQueue, Failure, QueueContext, Synchronous, Wait};
pub use drivers::{
    Bell, Engine, Exclusive, Fallback, FileDevice, FileOptions, Holder, MemoryDevice, MemoryDriver,
    NullDevice, NullDriver, NullOptions, NullQueue, OpenError, Taken, announce_fallback,
    mounted_at,
};
pub use error::{BlockError, FailedBio, Reason};
pub use future::CompletionFuture;
pub use plug::{Plug, PlugThreshold, flush_thread as flush_plugs};
pub use pool::BufferPool;
pub use queue::{
    Claim, Completer, Drive, Frozen, Leaf, OverlapOrder, QueueOptions, RequestList, RequestQueue,
    Staging, UnplugMode,
};
pub use request::Request;
pub use sector::{SECTOR_SIZE, Sector};
pub use segment::{Segment, SegmentList};
pub use statistics::{Latencies, QueueLatencies, QueueName, QueueReport, Statistics};
pub use waiter::Waiter;
pub use window::Window;
