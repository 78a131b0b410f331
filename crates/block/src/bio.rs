//! A bio: one operation a caller asks for, on consecutive sectors, with the memory it uses.
//!
//! The bio owns its memory while it is in flight: a write holds shared read-only segments, a read
//! holds its buffer alone and gives it back in the [`Completion`]. Exactly one completion reaches
//! the receiver of every bio, whatever happens to it; a bio that is dropped unanswered completes
//! with [`Reason::Abandoned`].
//!
//! A bio without a receiver loses its error (debug builds panic then), so every bio that can fail
//! needs one of [`on_complete`](Bio::on_complete), [`in_batch`](Bio::in_batch),
//! [`waited`](Bio::waited), [`future`](Bio::future), [`in_queue`](Bio::in_queue).

mod intercept;
mod split;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Batch, Ticket};
use crate::buffer::Buffer;
use crate::callback::{self, Due};
use crate::completion_queue::{self, CompletionQueue, Finished};
use crate::device::{BlockDevice, Limits};
use crate::error::{BlockError, Reason};
use crate::future::{CompletionFuture, future};
use crate::sector::{SECTOR_SIZE, Sector};
use crate::segment::SegmentList;
use crate::waiter::{Waiter, waiter};
pub(crate) use intercept::Interceptor;
use split::Join;

/// What a bio does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Fills the bio's buffer from the device.
    Read,
    /// Stores the bio's segments on the device.
    Write,
    /// Makes every write that completed or was submitted before durable. Covers no sectors.
    Flush,
    /// Tells the device that the contents are not needed; what a later read returns is unspecified.
    Discard,
    /// Makes the sectors read as zeroes, without carrying zeroes.
    WriteZeroes,
}

impl Operation {
    /// Whether the operation changes what the device holds.
    #[must_use]
    pub const fn modifies(self) -> bool {
        matches!(self, Self::Write | Self::Discard | Self::WriteZeroes)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::WriteZeroes => "write of zeroes",
        })
    }
}

/// One operation on consecutive sectors. Made by a constructor per operation, submitted through a
/// [`Plug`](crate::Plug).
#[must_use = "a bio does nothing until it is submitted"]
pub struct Bio {
    operation: Operation,
    force_unit_access: bool,
    immediate: bool,
    /// Where the bio goes, in the addresses of the device that it has been handed to.
    sector: Sector,
    /// Where its submitter sent it, for errors.
    origin: Sector,
    length: u64,
    pub(crate) payload: Payload,
    receiver: Receiver,
}

/// The memory of a bio.
#[derive(Debug)]
pub(crate) enum Payload {
    Nothing,
    Write(SegmentList),
    Read(Buffer),
}

/// Who learns how a bio ended.
enum Receiver {
    Nobody,
    Batch(Ticket),
    /// The completion queue with this number.
    Queue {
        number: u64,
        cookie: u64,
    },
    Callback(Box<dyn FnOnce(Completion) + Send>),
    /// A device that the bio passed.
    Interceptor(Interceptor),
    /// The whole that the bio is a part of.
    Part(Arc<Join>),
}

/// How a bio ended.
#[derive(Debug)]
pub struct Completion {
    /// What the bio did.
    pub operation: Operation,
    /// Its first sector, as the submitter gave it.
    pub sector: Sector,
    /// Whether it succeeded. After a failed write the sectors hold old, new or mixed contents.
    pub result: Result<(), BlockError>,
    /// The buffer of a read, filled if the read succeeded, unspecified contents if not.
    pub buffer: Option<Buffer>,
}

impl Bio {
    /// A read of `buffer.len()` bytes from `sector` on; the buffer comes back in the completion.
    pub fn read(sector: Sector, buffer: Buffer) -> Self {
        let length = buffer.len() as u64;
        Self::new(Operation::Read, sector, length, Payload::Read(buffer))
    }

    /// A write of `segments` to `sector` on; their total must be a whole number of sectors.
    pub fn write(sector: Sector, segments: impl Into<SegmentList>) -> Self {
        let segments = segments.into();
        let length = segments.bytes();
        Self::new(Operation::Write, sector, length, Payload::Write(segments))
    }

    /// A flush: completes when everything submitted before it is durable.
    pub fn flush() -> Self {
        Self::new(Operation::Flush, Sector::ZERO, 0, Payload::Nothing)
    }

    /// Makes `bytes` bytes (whole sectors) from `sector` on read as zeroes.
    pub fn write_zeroes(sector: Sector, bytes: u64) -> Self {
        Self::new(Operation::WriteZeroes, sector, bytes, Payload::Nothing)
    }

    /// Gives `bytes` bytes (whole sectors) from `sector` on back to the device.
    pub fn discard(sector: Sector, bytes: u64) -> Self {
        Self::new(Operation::Discard, sector, bytes, Payload::Nothing)
    }

    fn new(operation: Operation, sector: Sector, length: u64, payload: Payload) -> Self {
        let receiver = Receiver::Nobody;
        let (force_unit_access, immediate) = (false, false);
        let origin = sector;
        Self { operation, force_unit_access, immediate, sector, origin, length, payload, receiver }
    }

    /// Forced unit access: this bio completes only when its own sectors are durable.
    pub fn force_unit_access(mut self) -> Self {
        self.force_unit_access = true;
        self
    }

    /// Declares that the submitter does nothing but wait for this bio, so that a device may do the
    /// work in the submitting thread instead of handing it to another.
    pub(crate) fn immediate(mut self) -> Self {
        self.immediate = true;
        self
    }

    /// Calls `receiver` with the completion, in whatever thread completes the bio.
    ///
    /// The callback must not block (it may submit bios): the thread may be the one that has to do
    /// the work waited for. Callbacks do not nest: one that is due while another runs in the same
    /// thread runs after it.
    pub fn on_complete(mut self, receiver: impl FnOnce(Completion) + Send + 'static) -> Self {
        self.receiver = Receiver::Callback(Box::new(receiver));
        self
    }

    /// Delivers the completion to `queue`, under the name `cookie`.
    pub fn in_queue(mut self, queue: &CompletionQueue, cookie: u64) -> Self {
        self.receiver = Receiver::Queue { number: queue.number(), cookie };
        self
    }

    /// A future of the completion of this bio.
    pub fn future(self) -> (Self, CompletionFuture) {
        let (deliver, future) = future();
        (self.on_complete(deliver), future)
    }

    /// Counts this bio in `batch`, which keeps its error. The buffer of a read is dropped.
    pub fn in_batch(mut self, batch: &Batch) -> Self {
        self.receiver = Receiver::Batch(batch.ticket());
        self
    }

    /// A handle to wait for the completion of this bio.
    pub fn waited(self) -> (Self, Waiter) {
        let (deliver, waiter) = waiter();
        (self.on_complete(deliver), waiter)
    }

    /// What the bio does.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether the bio's own sectors must be durable when it completes.
    #[must_use]
    pub fn is_force_unit_access(&self) -> bool {
        self.force_unit_access
    }

    /// Whether the submitter does nothing but wait for this bio.
    pub(crate) fn is_immediate(&self) -> bool {
        self.immediate
    }

    /// The first sector, in the addresses of the device that was handed the bio last.
    #[must_use]
    pub fn sector(&self) -> Sector {
        self.sector
    }

    /// The first sector as the submitter gave it; errors and completions carry it.
    #[must_use]
    pub fn origin(&self) -> Sector {
        self.origin
    }

    /// Moves the bio to `sector`, for a stacked device that hands it to one below.
    pub fn remap(&mut self, sector: Sector) {
        self.sector = sector;
    }

    /// Moves an operation without memory to `sectors`, whole or a part of what it did.
    pub(crate) fn reshape(&mut self, sectors: Range<Sector>) {
        debug_assert!(matches!(self.payload, Payload::Nothing), "{self:?} has memory");
        self.sector = sectors.start;
        self.length = (sectors.end.0 - sectors.start.0) * SECTOR_SIZE;
    }

    /// The check that a stacked device makes before it maps a bio: answers a bio that `device`
    /// cannot serve, because of its range or because it would change a read-only device, and
    /// returns any other.
    #[must_use]
    pub fn admit<D: BlockDevice + ?Sized>(self, device: &D) -> Option<Self> {
        if self.operation.modifies() && device.is_read_only() {
            self.fail(device.name(), Reason::ReadOnly);
            return None;
        }
        let capacity = device.capacity();
        if self.end().is_none_or(|end| end > capacity) {
            self.fail(device.name(), Reason::OutOfRange { capacity });
            return None;
        }
        Some(self)
    }

    /// The length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The sector after the last; `None` when the bio is not made of whole sectors, or when it
    /// ends beyond every possible device.
    pub(crate) fn end(&self) -> Option<Sector> {
        self.sector.checked_add(Sector::from_bytes(self.length)?)
    }

    /// Number of pieces of memory that a driver has to name for this bio.
    pub(crate) fn segment_count(&self) -> usize {
        match &self.payload {
            Payload::Nothing => 0,
            Payload::Write(segments) => segments.count(),
            Payload::Read(_) => 1,
        }
    }

    /// How many bytes from the front on fit in one request within `limits`; `None` if all do, or
    /// if not even one block would. Always whole blocks.
    pub(crate) fn fitting_bytes(&self, limits: &Limits) -> Option<u64> {
        let too_long = match &self.payload {
            Payload::Nothing => return None,
            Payload::Read(_) => self.length > limits.max_request_bytes,
            Payload::Write(segments) => {
                self.length > limits.max_request_bytes || segments.count() > limits.max_segments
            }
        };
        if !too_long {
            return None;
        }
        let mut bytes = self.length.min(limits.max_request_bytes);
        if let Payload::Write(segments) = &self.payload
            && segments.count() > limits.max_segments
        {
            let first = segments.iter().take(limits.max_segments);
            bytes = bytes.min(first.map(|segment| segment.len() as u64).sum());
        }
        let bytes = bytes / limits.block_bytes * limits.block_bytes;
        (bytes > 0 && bytes < self.length).then_some(bytes)
    }

    /// Whether every piece of memory starts and ends at a multiple of `unit` bytes.
    pub(crate) fn is_memory_aligned(&self, unit: usize) -> bool {
        let aligned = |bytes: &[u8]| {
            (bytes.as_ptr() as usize).is_multiple_of(unit) && bytes.len().is_multiple_of(unit)
        };
        match &self.payload {
            Payload::Nothing => true,
            Payload::Write(segments) => segments.iter().all(|segment| aligned(segment)),
            Payload::Read(buffer) => aligned(buffer),
        }
    }

    /// Ends the bio well.
    pub fn succeed(mut self) {
        self.finish(Ok(()));
    }

    /// Ends the bio with an error on `device`.
    pub fn fail(mut self, device: &str, reason: Reason) {
        let error = self.error(device, reason);
        self.finish(Err(error));
    }

    fn error(&self, device: &str, reason: Reason) -> BlockError {
        let Self { operation, origin: sector, length, .. } = *self;
        BlockError { device: device.into(), operation, sector, length, reason }
    }

    /// What a receiver is told; takes the memory.
    fn completion(&mut self, result: Result<(), BlockError>) -> Completion {
        let buffer = match std::mem::replace(&mut self.payload, Payload::Nothing) {
            Payload::Read(buffer) => Some(buffer),
            Payload::Write(_) | Payload::Nothing => None,
        };
        let Self { operation, origin: sector, .. } = *self;
        Completion { operation, sector, result, buffer }
    }

    /// Delivers `result` to the receiver; later calls do nothing.
    pub(crate) fn finish(&mut self, result: Result<(), BlockError>) {
        match std::mem::replace(&mut self.receiver, Receiver::Nobody) {
            Receiver::Nobody => {
                debug_assert!(result.is_ok(), "an error reached nobody: {result:?}");
            }
            Receiver::Batch(ticket) => ticket.complete(result),
            Receiver::Queue { number, cookie } => {
                let completion = self.completion(result);
                completion_queue::deliver(number, Finished { cookie, completion });
            }
            Receiver::Callback(receiver) => {
                let completion = self.completion(result);
                callback::run(Due::Callback(receiver, completion));
            }
            Receiver::Interceptor(interceptor) => {
                callback::run(Due::Interceptor(interceptor, self.without_receiver(), result));
            }
            Receiver::Part(join) => {
                join.answered(std::mem::replace(&mut self.payload, Payload::Nothing), result);
            }
        }
    }
}

impl Drop for Bio {
    fn drop(&mut self) {
        if !matches!(self.receiver, Receiver::Nobody) {
            let error = self.error("no device", Reason::Abandoned);
            self.finish(Err(error));
        }
    }
}

impl fmt::Debug for Bio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bio")
            .field("operation", &self.operation)
            .field("force_unit_access", &self.force_unit_access)
            .field("sector", &self.sector)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Completion {
    /// The filled buffer of a successful read (empty for other operations), or the error.
    pub fn into_buffer(self) -> Result<Buffer, BlockError> {
        self.result.map(|()| self.buffer.unwrap_or_else(|| Buffer::zeroed(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_bio_reports_that_it_was_abandoned() {
        let (bio, waiter) = Bio::read(Sector(4), Buffer::zeroed(512)).waited();
        drop(bio);
        let completion = waiter.wait();
        assert_eq!(completion.buffer.map(|buffer| buffer.len()), Some(512));
        let error = completion.result.unwrap_err();
        assert!(matches!(error.reason, Reason::Abandoned));
        assert_eq!((error.sector, error.length), (Sector(4), 512));
    }

    #[test]
    fn the_end_exists_only_for_whole_sectors_on_a_possible_device() {
        assert_eq!(Bio::write_zeroes(Sector(1), 2 * SECTOR_SIZE).end(), Some(Sector(3)));
        assert_eq!(Bio::write_zeroes(Sector(1), 100).end(), None);
        assert_eq!(Bio::write_zeroes(Sector::MAX, SECTOR_SIZE).end(), None);
        assert_eq!(Bio::flush().end(), Some(Sector::ZERO));
    }

    #[test]
    fn alignment_looks_at_every_segment() {
        let aligned = Bio::write(Sector(0), Buffer::zeroed(4096));
        assert!(aligned.is_memory_aligned(4096));
        let mut segments = SegmentList::from(Buffer::zeroed(12));
        segments.pad_to(512);
        assert!(!Bio::write(Sector(0), segments).is_memory_aligned(512));
    }
}
