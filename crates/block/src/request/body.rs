//! The body of a request: its bios, and the state that the queue layer keeps of it.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::thread::LocalKey;

use smallvec::SmallVec;
use undercroft_tags::Tag;

use super::failure::Failure;
use super::order::Ordered;
use crate::bio::{Bio, Operation};
use crate::memory::{Buffer, Recycle, Recycled, SegmentList, Spares, gather};
use crate::units::{Limits, Sector};

/// One operation of a driver: bios of one kind whose sectors follow each other.
///
/// As large as a pointer, so it is cheap to hand on.
#[must_use = "a request must be submitted, completed or failed"]
#[derive(Debug)]
pub struct Request {
    pub(crate) inner: Recycled<Inner>,
}

/// What a request holds: its bios, and the state that the queue layer keeps of it.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) operation: Operation,
    pub(super) force_unit_access: bool,
    pub(super) immediate: bool,
    pub(super) unwaiting: bool,
    pub(super) seldom_waiting: bool,
    pub(super) by_place: bool,
    pub(super) sector: Sector,
    pub(super) length: u64,
    pub(super) segments: usize,
    /// Number of the request among those in flight in its hardware queue.
    pub(crate) tag: Option<Tag>,
    /// Its place in the order of overlapping requests; 0 = not in it.
    pub(crate) ordered: u64,
    /// Its hardware queue.
    pub(crate) hardware: u32,
    /// Its slot among the deadlines of its hardware queue, where there is a time limit.
    pub(crate) deadline: u32,
    /// The number of its leaf; 0 = it has not come to one.
    pub(crate) leaf: u64,
    /// The CPU that submitted it.
    pub(crate) cpu: u32,
    /// When it was submitted, in nanoseconds.
    pub(crate) submitted: u64,
    /// Why it failed, when it has. Boxed, since few do.
    pub(crate) failure: Option<Box<Failure>>,
    /// The bio with the first sectors; none only when the request was answered.
    pub(super) first: Option<Bio>,
    /// Those behind it, in the order of their sectors.
    pub(super) others: Vec<Bio>,
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
            unwaiting: false,
            seldom_waiting: false,
            by_place: false,
            sector: Sector::ZERO,
            length: 0,
            segments: 0,
            tag: None,
            ordered: 0,
            hardware: 0,
            deadline: 0,
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

impl Request {
    /// A request of one bio, which is made of whole sectors ([`Bio::end`] exists).
    pub(crate) fn new(bio: Bio) -> Self {
        debug_assert!(bio.end().is_some());
        let mut inner = Recycled::<Inner>::cleared();
        inner.operation = bio.operation();
        inner.force_unit_access = bio.is_force_unit_access();
        inner.immediate = bio.is_immediate();
        inner.unwaiting = bio.is_unwaiting();
        inner.seldom_waiting = bio.is_seldom_waiting();
        inner.by_place = bio.is_by_place();
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

    /// Whether the submitting thread may serve this request if nothing has to be waited for.
    pub(crate) fn is_unwaiting(&self) -> bool {
        self.inner.unwaiting
    }

    /// Whether the submitting thread may serve this write if that seldom waits.
    #[must_use]
    pub fn is_seldom_waiting(&self) -> bool {
        self.inner.seldom_waiting
    }

    /// Whether this read may be answered by the place of its bytes.
    pub(crate) fn is_by_place(&self) -> bool {
        self.inner.by_place
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

    /// Number of this request among those in flight in its hardware queue, below the depth given to
    /// the driver queue: an index for a driver's table, and the number it puts in a ring.
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

    /// Takes the request out, for a driver that [executes](crate::Driver::execute) it and lets other
    /// threads have it meanwhile. It has to be put back before that returns.
    pub fn take(&mut self) -> Self {
        Self { inner: std::mem::replace(&mut self.inner, Recycled::cleared()) }
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

    /// Copies the bytes of a write to `memory`, which is as long as they are, and has the bios write
    /// them from there. Their own memory goes back to its owners at once.
    pub(crate) fn move_to(&mut self, mut memory: Buffer) {
        gather(self.gather(), &mut memory);
        let mut rest = SegmentList::from(memory);
        for bio in self.bios_mut() {
            let behind = rest.split_off(bio.length());
            bio.set_segments(std::mem::replace(&mut rest, behind));
        }
        self.inner.segments = self.bio_count();
    }

    /// The memory to fill of a read, in order.
    pub fn scatter(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bios_mut().filter_map(|bio| bio.buffer_mut().map(|buffer| &mut **buffer))
    }

    /// Has a read be answered by the place of its bytes: `file`, whose sectors are those of the device.
    pub(crate) fn set_place(&mut self, file: &Arc<File>) {
        self.bios_mut().for_each(|bio| bio.set_place(file));
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
            // One may be refused where its neighbour, of another file, is not.
            && bio.operation() != Operation::CloneRange
            && bio.is_force_unit_access() == self.inner.force_unit_access
            && bio.is_by_place() == self.inner.by_place
            && (segments == 0 || length <= limits.max_request_bytes)
            && segments <= limits.max_segments
    }

    /// Appends `bio`, which this request [accepts](Self::accepts).
    pub(crate) fn merge(&mut self, bio: Bio) {
        self.inner.length += bio.length();
        self.inner.segments += bio.segment_count();
        self.inner.immediate |= bio.is_immediate();
        self.inner.unwaiting &= bio.is_unwaiting();
        self.inner.seldom_waiting &= bio.is_seldom_waiting();
        self.inner.others.push(bio);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Batch;
    use crate::memory::Segment;

    #[test]
    fn a_request_that_was_moved_writes_the_same_and_its_memory_is_free() {
        let bytes: Vec<u8> = (0..2048u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        let (owned, batch) = (Arc::new(bytes.clone()), Batch::new());
        let write = |from: usize, to: usize| {
            let middle = (from + to) / 2;
            let pieces = [from..middle, middle..to].map(|range| Segment::shared(&owned, range));
            Bio::write(Sector(from as u64 / 512), pieces.to_vec()).in_batch(&batch)
        };
        let mut request = Request::new(write(0, 1536));
        request.merge(write(1536, 2048));
        assert_eq!((request.segment_count(), Arc::strong_count(&owned)), (4, 5));
        request.move_to(Buffer::zeroed(2048));
        assert_eq!((request.segment_count(), Arc::strong_count(&owned)), (2, 1));
        assert_eq!(request.gather().map(<[u8]>::len).collect::<Vec<_>>(), [1536, 512]);
        assert_eq!(request.gather().collect::<Vec<_>>().concat(), bytes);
        request.complete();
        batch.wait().unwrap();
    }
}
