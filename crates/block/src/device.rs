//! The waist of the stack: what every device does, and what it promises.

use crate::error::BlockError;
use crate::request::Request;
use crate::sector::Sector;
use crate::statistics::Statistics;
use crate::{Bio, Buffer};

/// What the requests to a device should look like. The plug merges within these limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Merging stops at this many bytes. A single larger bio is served all the same.
    pub max_request_bytes: u64,
    /// Merging stops at this many pieces of memory. A single bio with more is served all the same.
    pub max_segments: usize,
    /// Start and length of every piece of memory are multiples of this, in bytes; 1 = any.
    pub memory_alignment: usize,
}

/// A device of [`SECTOR_SIZE`](crate::SECTOR_SIZE)-byte sectors.
///
/// # Contract
/// - **Answers.** Every request submitted is answered once, by [`Request::complete`] or
///   [`Request::fail`], possibly in another thread and possibly before `submit` returns.
/// - **Checks.** The device checks range, alignment and permission, with [`Request::admit`] as
///   its first step. Callers cannot: the capacity may change between their check and the I/O.
/// - **Order.** Completions come in any order. Requests that overlap, one of them modifying, take
///   effect in the order in which they were submitted, if that order is defined (one thread, or
///   threads that synchronised).
/// - **Durability.** A completed write is visible to every later read, and durable only after a
///   flush that was submitted after it, or if it asked for forced unit access. A flush covers all
///   requests submitted before it, completed or not. After a failed flush nothing is known about
///   the durability of earlier writes.
/// - **Blocking.** `submit` may block for room in a queue, never in a completion callback.
/// - **Names.** An error carries the name of the device that failed and the addresses of the
///   submitter, also through devices stacked on each other.
pub trait BlockDevice: Send + Sync {
    /// How messages call this device: a path, or a description.
    fn name(&self) -> &str;

    /// Number of sectors.
    fn capacity(&self) -> Sector;

    /// What requests should look like.
    fn limits(&self) -> Limits;

    /// Whether operations that modify are refused.
    fn is_read_only(&self) -> bool;

    /// Starts `requests`, in their order as far as it matters (see the contract).
    fn submit(&self, requests: Vec<Request>);

    /// Waits until every request submitted before has been answered. Does not flush caches.
    fn drain(&self);

    /// What passed through this device so far.
    fn statistics(&self) -> Statistics;
}

/// Submits one bio, past any plug but after what the plugs of this thread hold, and waits.
fn submit_and_wait(device: &dyn BlockDevice, bio: Bio) -> Result<Buffer, BlockError> {
    crate::plug::flush_thread();
    let (bio, waiter) = bio.immediate().waited();
    crate::plug::submit_directly(device, bio);
    waiter.wait().into_buffer()
}

/// Reads `length` bytes (whole sectors) from `sector` on, without a copy.
///
/// # Errors
/// As the device answered.
pub fn read_buffer(
    device: &dyn BlockDevice,
    sector: Sector,
    length: usize,
) -> Result<Buffer, BlockError> {
    submit_and_wait(device, Bio::read(sector, Buffer::zeroed(length)))
}

/// Fills `bytes` (whole sectors) from `sector` on. For metadata and small reads: it copies, since
/// memory in flight is owned by its bio. On an error the contents of `bytes` are unspecified.
///
/// # Errors
/// As the device answered.
pub fn read_exact_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &mut [u8],
) -> Result<(), BlockError> {
    bytes.copy_from_slice(&read_buffer(device, sector, bytes.len())?);
    Ok(())
}

/// Writes a copy of `bytes` (whole sectors) to `sector` on. Not durable before a [`flush`].
///
/// # Errors
/// As the device answered.
pub fn write_all_at(
    device: &dyn BlockDevice,
    sector: Sector,
    bytes: &[u8],
) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::write(sector, Buffer::copy_of(bytes))).map(drop)
}

/// Makes everything submitted before durable.
///
/// # Errors
/// As the device answered; afterwards nothing is known about the durability of earlier writes.
pub fn flush(device: &dyn BlockDevice) -> Result<(), BlockError> {
    submit_and_wait(device, Bio::flush()).map(drop)
}
