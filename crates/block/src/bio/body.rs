//! The body of a bio: its operation, its sectors, its memory, and the receiver of its completion.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::thread::LocalKey;

use super::batch::Ticket;
use super::completion::Completion;
use super::error::BlockError;
use super::file_range::FileRange;
use super::join::Join;
use super::operation::Operation;
use crate::memory::{Buffer, Recycle, Recycled, SegmentList, Spares};
use crate::units::{SECTOR_SIZE, Sector};

/// One operation on consecutive sectors. Made by a constructor per operation, submitted through a
/// [`Plug`](crate::Plug).
///
/// As large as a pointer, so it is cheap to hand on.
#[must_use = "a bio does nothing until it is submitted"]
pub struct Bio {
    pub(super) inner: Recycled<Inner>,
}

/// What the submitter of a bio asks for beside its operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) force_unit_access: bool,
    pub(super) untorn: bool,
    pub(super) immediate: bool,
    pub(super) unwaiting: bool,
    pub(super) seldom_waiting: bool,
    pub(super) by_place: bool,
}

impl Flags {
    /// Those of a part of a bio, whose bytes have to meet those of the other parts in memory.
    pub(super) fn of_part(self) -> Self {
        Self { by_place: false, ..self }
    }
}

/// The contents of a bio.
pub(super) struct Inner {
    pub(super) operation: Operation,
    pub(super) flags: Flags,
    /// Where the bio goes, in the addresses of the device that it has been handed to.
    pub(super) sector: Sector,
    /// Where its submitter sent it, for errors.
    pub(super) origin: Sector,
    pub(super) length: u64,
    /// What a read fills.
    pub(super) buffer: Option<Buffer>,
    /// What a write stores.
    pub(super) segments: SegmentList,
    /// Whose blocks a clone shares, or where the bytes of a read are that was answered so.
    pub(super) source: Option<Box<FileRange>>,
    pub(super) receiver: Receiver,
}

thread_local! {
    static SPARES: Spares<Inner> = const { Spares::new() };
}

impl Recycle for Inner {
    fn unused() -> Self {
        Self {
            operation: Operation::Flush,
            flags: Flags::default(),
            sector: Sector::ZERO,
            origin: Sector::ZERO,
            length: 0,
            buffer: None,
            segments: SegmentList::new(),
            source: None,
            receiver: Receiver::None,
        }
    }

    fn spares() -> &'static LocalKey<Spares<Self>> {
        &SPARES
    }

    #[inline]
    fn clear(&mut self) {
        self.buffer = None;
        if self.segments.count() > 0 {
            self.segments = SegmentList::new();
        }
        self.source = None;
        // Most often it was taken: the test spares the call that drops one.
        if !matches!(self.receiver, Receiver::None) {
            self.receiver = Receiver::None;
        }
    }
}

/// What gets a bio back when it is answered.
pub(crate) type Interceptor = Box<dyn FnOnce(Bio, Result<(), BlockError>) + Send>;

/// Where it is told how a bio ended.
pub(super) enum Receiver {
    None,
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
    Part(Arc<Join<Bio>>),
}

impl Bio {
    /// A read of `buffer.len()` bytes from `sector` on; the buffer comes back in the completion.
    pub fn read(sector: Sector, buffer: Buffer) -> Self {
        let length = buffer.len() as u64;
        let mut bio = Self::new(Operation::Read, sector, length);
        bio.inner.buffer = Some(buffer);
        bio
    }

    /// A write of `segments` to `sector` on; their total must be a whole number of sectors.
    pub fn write(sector: Sector, segments: impl Into<SegmentList>) -> Self {
        let segments = segments.into();
        let length = segments.bytes();
        let mut bio = Self::new(Operation::Write, sector, length);
        bio.inner.segments = segments;
        bio
    }

    /// A write of `length` bytes to `sector` on that are in no memory of this process: only for those who
    /// know where.
    pub(crate) fn write_elsewhere(sector: Sector, length: u64) -> Self {
        Self::new(Operation::Write, sector, length)
    }

    /// A flush: completes when everything submitted before it is durable.
    pub fn flush() -> Self {
        Self::new(Operation::Flush, Sector::ZERO, 0)
    }

    /// Makes `bytes` bytes (whole sectors) from `sector` on read as zeroes.
    pub fn write_zeroes(sector: Sector, bytes: u64) -> Self {
        Self::new(Operation::WriteZeroes, sector, bytes)
    }

    /// Makes `bytes` bytes (whole sectors) from `sector` on share the blocks of a file. Of stacked
    /// devices those hand it on that keep each byte in one place.
    pub fn clone_range(sector: Sector, bytes: u64, source: FileRange) -> Self {
        let mut bio = Self::new(Operation::CloneRange, sector, bytes);
        bio.inner.source = Some(Box::new(source));
        bio
    }

    /// Gives `bytes` bytes (whole sectors) from `sector` on back to the device.
    pub fn discard(sector: Sector, bytes: u64) -> Self {
        Self::new(Operation::Discard, sector, bytes)
    }

    #[inline]
    fn new(operation: Operation, sector: Sector, length: u64) -> Self {
        let mut inner = Recycled::<Inner>::cleared();
        inner.operation = operation;
        inner.flags = Flags::default();
        inner.sector = sector;
        inner.origin = sector;
        inner.length = length;
        Self { inner }
    }

    /// Sets the receiver.
    #[inline]
    pub(super) fn tell(mut self, receiver: Receiver) -> Self {
        let before = std::mem::replace(&mut self.inner.receiver, receiver);
        if matches!(before, Receiver::None) {
            // Nothing to drop, most often: spares the call that drops one.
            std::mem::forget(before);
        }
        self
    }

    /// A bio that does the same, without memory, and tells `receiver`.
    pub(super) fn sibling(&self, receiver: Receiver) -> Self {
        let Inner { operation, flags, sector, origin, length, .. } = *self.inner;
        let mut sibling = Self::new(operation, sector, length);
        sibling.inner.flags = flags;
        sibling.inner.origin = origin;
        sibling.inner.receiver = receiver;
        sibling
    }

    /// The completion for the receiver.
    pub(crate) fn into_completion(mut self, result: Result<(), BlockError>) -> Completion {
        let buffer = self.inner.buffer.take();
        let place = match self.operation() {
            Operation::Read => self.inner.source.take().map(|place| *place),
            _ => None,
        };
        Completion { operation: self.operation(), sector: self.origin(), result, buffer, place }
    }

    /// What a write stores; nothing for other operations.
    pub(crate) fn segments(&self) -> &SegmentList {
        &self.inner.segments
    }

    /// Has a write store `segments`, which are as long as its own.
    pub(crate) fn set_segments(&mut self, segments: SegmentList) {
        debug_assert_eq!(segments.bytes(), self.inner.segments.bytes());
        self.inner.segments = segments;
    }

    /// Whose blocks a clone shares; nothing for other operations.
    pub(crate) fn source(&self) -> Option<&FileRange> {
        self.inner.source.as_deref()
    }

    /// Has a read be answered by the place of its bytes, which is `file` from its own sector on.
    pub(crate) fn set_place(&mut self, file: &Arc<File>) {
        debug_assert!(self.is_by_place());
        let range = FileRange { file: Arc::clone(file), offset: self.sector().0 * SECTOR_SIZE };
        self.inner.source = Some(Box::new(range));
    }

    /// What a read fills.
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        self.inner.buffer.as_mut()
    }

    /// Takes the memory away and never frees it.
    pub(crate) fn leak_memory(&mut self) {
        std::mem::forget(self.inner.buffer.take());
        std::mem::forget(std::mem::take(&mut self.inner.segments));
    }

    /// The operation of the bio.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// The first sector, in the addresses of the device that was handed the bio last.
    #[must_use]
    pub fn sector(&self) -> Sector {
        self.inner.sector
    }

    /// The first sector as the submitter gave it; errors and completions carry it.
    #[must_use]
    pub fn origin(&self) -> Sector {
        self.inner.origin
    }

    /// Moves the bio to `sector`, for a stacked device that hands it to one below.
    pub fn remap(&mut self, sector: Sector) {
        self.inner.sector = sector;
    }

    /// The length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.inner.length
    }
}

impl fmt::Debug for Bio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bio")
            .field("operation", &self.inner.operation)
            .field("force_unit_access", &self.is_force_unit_access())
            .field("sector", &self.inner.sector)
            .field("length", &self.inner.length)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Reason;

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
}
