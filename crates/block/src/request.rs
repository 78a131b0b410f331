//! A request: merged bios on consecutive sectors, as handed to a driver.
//!
//! A driver looks at the request, moves the bytes of [`gather`](Request::gather) or
//! [`scatter`](Request::scatter), and hands it back in [`Completions`](crate::Completions); the
//! queue layer then answers every bio in it once. When a driver drops a request instead, its bios
//! complete with [`Reason::Dropped`], and its tag comes back.

use std::ops::Range;
use std::thread::LocalKey;

use smallvec::SmallVec;
use undercroft_tags::Tag;

use crate::bio::{Bio, Operation};
use crate::device::Limits;
use crate::driver::Failure;
use crate::error::Reason;
use crate::queue::{Ordered, take_back};
use crate::recycled::{Recycle, Recycled, Spares};
use crate::sector::{SECTOR_SIZE, Sector};

/// One operation of a driver: bios of one kind whose sectors follow each other.
///
/// As large as a pointer, so it is cheap to hand on.
#[must_use = "a request must be submitted, completed or failed"]
#[derive(Debug)]
pub struct Request {
    pub(crate) inner: Recycled<Inner>,
}

/// What a request holds: its bios, and what the queue layer notes on the way.
#[derive(Debug)]
pub(crate) struct Inner {
    operation: Operation,
    force_unit_access: bool,
    immediate: bool,
    sector: Sector,
    length: u64,
    segments: usize,
    /// Number of the request among those in flight in its hardware queue.
    pub(crate) tag: Option<Tag>,
    /// Its place in the order of overlapping requests; 0 = not in it.
    pub(crate) ordered: u64,
    /// Its hardware queue.
    pub(crate) hardware: u32,
    /// Where it is promised an answer in time, if its hardware queue promises that.
    pub(crate) promise: u32,
    /// The number of its leaf; 0 = it has not come to one.
    pub(crate) leaf: u64,
    /// The CPU that submitted it.
    pub(crate) cpu: u32,
    /// When it was submitted, in nanoseconds.
    pub(crate) submitted: u64,
    /// Why it failed, when it has. Boxed, since few do.
    pub(crate) failure: Option<Box<Failure>>,
    /// The bio with the first sectors; none only when the request was answered.
    first: Option<Bio>,
    /// Those behind it, in the order of their sectors.
    others: Vec<Bio>,
}

thread_local! {
    static SPARES: Spares<Inner> = const { Spares::new() };
}

impl Recycle for Inner {
    fn unused() -> Self {
        Self {
            operation: Operation::Flush,
            force_unit_access: false,
            immediate: false,
            sector: Sector::ZERO,
            length: 0,
            segments: 0,
            tag: None,
            ordered: 0,
            hardware: 0,
            promise: 0,
            leaf: 0,
            cpu: 0,
            submitted: 0,
            failure: None,
            first: None,
            others: Vec::new(),
        }
    }

    fn spares() -> &'static LocalKey<Spares<Self>> {
        &SPARES
    }

    #[inline]
    fn clear(&mut self) {
        self.failure = None;
        self.first = None;
        if !self.others.is_empty() {
            self.others = Vec::new();
        }
    }
}

/// The bios of a request without their memory, to answer them.
pub(crate) type Receivers = SmallVec<[Bio; 1]>;

/// What a device can serve, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) capacity: Sector,
    pub(crate) read_only: bool,
}

impl Request {
    /// A request of one bio, which is made of whole sectors ([`Bio::end`] exists).
    pub(crate) fn new(bio: Bio) -> Self {
        debug_assert!(bio.end().is_some());
        let mut inner = Recycled::<Inner>::cleared();
        inner.operation = bio.operation();
        inner.force_unit_access = bio.is_force_unit_access();
        inner.immediate = bio.is_immediate();
        inner.sector = bio.sector();
        inner.length = bio.length();
        inner.segments = bio.segment_count();
        inner.tag = None;
        inner.ordered = 0;
        inner.leaf = 0;
        inner.first = Some(bio);
        Self { inner }
    }

    /// What to do.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// Whether the sectors must be durable on completion.
    #[must_use]
    pub fn is_force_unit_access(&self) -> bool {
        self.inner.force_unit_access
    }

    /// Whether the submitting thread does nothing but wait for this request: a device that can
    /// serve it in that thread saves two changes of threads.
    #[must_use]
    pub fn is_immediate(&self) -> bool {
        self.inner.immediate
    }

    /// The first sector.
    #[must_use]
    pub fn sector(&self) -> Sector {
        self.inner.sector
    }

    /// The length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.inner.length
    }

    /// Number of this request among those in flight in its hardware queue, below the depth given
    /// to the driver queue: an index for a driver's table, and what it puts in a ring.
    #[must_use]
    pub fn tag(&self) -> u32 {
        self.inner.tag.map_or(0, Tag::number)
    }

    /// Number of bios in the request.
    #[must_use]
    pub fn bio_count(&self) -> usize {
        usize::from(self.inner.first.is_some()) + self.inner.others.len()
    }

    /// Number of pieces that [`gather`](Self::gather) or [`scatter`](Self::scatter) yields.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.inner.segments
    }

    /// The sectors covered; for a request handed to a driver, inside the device.
    #[must_use]
    pub fn sectors(&self) -> Range<Sector> {
        let end = Sector(self.inner.sector.0.saturating_add(Sector::covering(self.inner.length).0));
        self.inner.sector..end
    }

    pub(crate) fn bios(&self) -> impl Iterator<Item = &Bio> {
        self.inner.first.iter().chain(&self.inner.others)
    }

    fn bios_mut(&mut self) -> impl Iterator<Item = &mut Bio> {
        let inner = &mut *self.inner;
        inner.first.iter_mut().chain(&mut inner.others)
    }

    /// The bios, to be answered or to go into another request.
    pub(crate) fn take_bios(&mut self) -> impl Iterator<Item = Bio> + use<> {
        self.inner.first.take().into_iter().chain(std::mem::take(&mut self.inner.others))
    }

    /// Takes the receivers of the bios, which keep their memory: as bios that do the same.
    pub(crate) fn take_receivers(&mut self) -> Receivers {
        self.bios_mut().map(Bio::take_receiver).collect()
    }

    /// Gives the bios their receivers back.
    pub(crate) fn give_receivers(&mut self, receivers: Receivers) {
        self.bios_mut().zip(receivers).for_each(|(bio, other)| bio.give_receiver(other));
    }

    /// The bytes of a write, in order.
    pub fn gather(&self) -> impl Iterator<Item = &[u8]> {
        self.bios().flat_map(|bio| bio.segments().iter()).map(|segment| &**segment)
    }

    /// The memory to fill of a read, in order.
    pub fn scatter(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bios_mut().filter_map(|bio| bio.buffer_mut().map(|buffer| &mut **buffer))
    }

    /// Takes the memory away from the request and never frees it: for a driver that cannot tell
    /// whether something still reads or writes it.
    pub(crate) fn leak_memory(&mut self) {
        self.bios_mut().for_each(Bio::leak_memory);
    }

    /// Whether `bio` continues this request, and the result stays within `limits`.
    pub(crate) fn accepts(&self, bio: &Bio, limits: &Limits) -> bool {
        if bio.sector() != self.sectors().end {
            return false;
        }
        let length = self.inner.length.saturating_add(bio.length());
        let segments = self.inner.segments + bio.segment_count();
        bio.operation() == self.inner.operation
            && bio.is_force_unit_access() == self.inner.force_unit_access
            && (segments == 0 || length <= limits.max_request_bytes)
            && segments <= limits.max_segments
    }

    /// Appends `bio`, which this request [accepts](Self::accepts).
    pub(crate) fn merge(&mut self, bio: Bio) {
        self.inner.length += bio.length();
        self.inner.segments += bio.segment_count();
        self.inner.immediate |= bio.is_immediate();
        self.inner.others.push(bio);
    }

    /// Whether a device can serve all bios of the request.
    #[inline]
    pub(crate) fn is_admissible(&self, terms: &Terms) -> bool {
        let Terms { limits, capacity, read_only } = terms;
        let in_blocks = |bytes: u64| bytes.is_multiple_of(limits.block_bytes);
        self.sectors().end <= *capacity
            && !(*read_only && self.inner.operation.modifies())
            && (limits.block_bytes == SECTOR_SIZE
                || (in_blocks(self.inner.sector.0.wrapping_mul(SECTOR_SIZE))
                    && in_blocks(self.inner.length)))
            && (limits.memory_alignment <= 1
                || self.bios().all(|bio| bio.is_memory_aligned(limits.memory_alignment)))
    }

    /// Fails the bios that `device`, which is as `terms` says, cannot serve, and returns the rest,
    /// if any. Bios beyond the end do not affect those merged with them.
    pub(crate) fn admit(mut self, device: &str, terms: &Terms) -> Option<Self> {
        let capacity = terms.capacity;
        // Sectors ascend through the bios, so those out of range are the last ones.
        while self.sectors().end > capacity {
            let last = self.inner.others.pop();
            let Some(bio) = last.or_else(|| self.inner.first.take()) else { break };
            self.inner.length -= bio.length();
            self.inner.segments -= bio.segment_count();
            bio.fail(device, Reason::OutOfRange { capacity });
            self.inner.first.as_ref()?;
        }
        if self.is_admissible(terms) {
            return Some(self);
        }
        let reason = if terms.read_only && self.inner.operation.modifies() {
            Reason::ReadOnly
        } else {
            let Limits { block_bytes, memory_alignment, .. } = terms.limits;
            Reason::Misaligned { unit: block_bytes.max(memory_alignment as u64) }
        };
        self.fail(device, 0, &reason);
        None
    }

    /// Notes how the request ended, to be [answered](Self::answer) later.
    #[inline]
    pub(crate) fn note(&mut self, result: Result<(), Failure>) {
        self.inner.failure = result.err().map(Box::new);
    }

    /// Ends the request as was noted; errors are those of `device`.
    #[inline]
    pub(crate) fn answer(mut self, device: &str) {
        match self.inner.failure.take() {
            None => self.complete(),
            Some(failure) => self.fail(device, failure.done, &failure.reason),
        }
    }

    /// Ends the request well.
    #[inline]
    pub(crate) fn complete(mut self) {
        if let Some(first) = self.inner.first.take() {
            first.finish(Ok(()));
        }
        if !self.inner.others.is_empty() {
            let others = std::mem::take(&mut self.inner.others);
            others.into_iter().for_each(|bio| bio.finish(Ok(())));
        }
    }

    /// Ends the request with an error on `device` after the first `done` bytes were transferred:
    /// bios that lie in them succeed, the others fail.
    pub(crate) fn fail(mut self, device: &str, done: u64, reason: &Reason) {
        let mut end = 0;
        for bio in self.take_bios() {
            end += bio.length();
            // A flush transfers nothing, so no number of bytes done makes it succeed.
            if bio.length() > 0 && end <= done {
                bio.succeed();
            } else {
                bio.fail(device, reason.clone());
            }
        }
    }
}

impl Ordered for Request {
    fn operation(&self) -> Operation {
        self.inner.operation
    }

    fn sectors(&self) -> Range<Sector> {
        self.sectors()
    }

    fn number(&self) -> u64 {
        self.inner.ordered
    }

    fn set_number(&mut self, number: u64) {
        self.inner.ordered = number;
    }
}

impl Drop for Request {
    #[inline]
    fn drop(&mut self) {
        if self.inner.first.is_some() {
            self.is_lost();
        }
    }
}

impl Request {
    /// The request is dropped unanswered.
    #[cold]
    #[inline(never)]
    fn is_lost(&mut self) {
        let known = self.inner.leaf != 0;
        debug_assert!(known || std::thread::panicking(), "a request was dropped unanswered");
        if known {
            let inner = std::mem::replace(&mut self.inner, Recycled::cleared());
            take_back(Self { inner });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::buffer::Buffer;

    const LIMITS: Limits = Limits {
        block_bytes: SECTOR_SIZE,
        max_request_bytes: 4 * SECTOR_SIZE,
        max_segments: 3,
        memory_alignment: 1,
    };

    fn write(sector: u64, sectors: usize) -> Bio {
        Bio::write(Sector(sector), Buffer::zeroed(sectors * 512))
    }

    #[test]
    fn merging_stops_at_gaps_kinds_and_limits() {
        let mut request = Request::new(write(10, 1));
        assert!(!request.accepts(&write(12, 1), &LIMITS), "a gap");
        assert!(!request.accepts(&write(11, 1).force_unit_access(), &LIMITS), "a flag");
        let read = Bio::read(Sector(11), Buffer::zeroed(512));
        assert!(!request.accepts(&read, &LIMITS), "another operation");
        assert!(!request.accepts(&write(11, 4), &LIMITS), "too many bytes");
        for sector in [11, 12] {
            let next = write(sector, 1);
            assert!(request.accepts(&next, &LIMITS));
            request.merge(next);
        }
        assert!(!request.accepts(&write(13, 1), &LIMITS), "too many segments");
        assert_eq!((request.bio_count(), request.length()), (3, 3 * SECTOR_SIZE));
        request.complete();
    }

    #[test]
    fn zeroes_carry_no_memory_and_merge_without_end() {
        let mut request = Request::new(Bio::write_zeroes(Sector(0), 1 << 30));
        let more = Bio::write_zeroes(Sector((1 << 30) / SECTOR_SIZE), 1 << 30);
        assert!(request.accepts(&more, &LIMITS));
        request.merge(more);
        request.complete();
    }

    #[test]
    fn a_partial_failure_spares_the_bios_that_were_done() {
        let batches = [Batch::new(), Batch::new(), Batch::new()];
        let mut request = Request::new(write(0, 1).in_batch(&batches[0]));
        for (batch, sector) in batches[1..].iter().zip(1..) {
            request.merge(write(sector, 1).in_batch(batch));
        }
        request.fail("disk", SECTOR_SIZE + 100, &Reason::ReadOnly);
        assert!(batches[0].wait().is_ok());
        assert_eq!(batches[1].wait().unwrap_err().sector, Sector(1));
        assert_eq!(batches[2].wait().unwrap_err().sector, Sector(2));
    }

    #[test]
    fn a_failed_flush_fails() {
        let batch = Batch::new();
        Request::new(Bio::flush().in_batch(&batch)).fail("disk", 0, &Reason::ReadOnly);
        assert!(batch.wait().is_err());
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "dropped unanswered")]
    fn dropping_a_request_shows() {
        drop(Request::new(Bio::flush()));
    }
}
