//! Read-only views of shared memory: the data of a write bio.
//!
//! Many bios may point into one large buffer (a chunk of an archive that holds a hundred small
//! files) and leave the device as one request without a copy. Zeroes for padding point to static
//! memory, so they cost neither memory nor a reference count.
#![allow(unsafe_code, reason = "views of memory that their owner keeps allocated")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use smallvec::SmallVec;

use super::buffer::Buffer;
use super::region::Share;

/// Source of all padding.
static ZEROES: Zeroes = Zeroes(UnsafeCell::new([0; Segment::ZEROES_MAX]));

/// Zeroes with the alignment of a buffer. They are never written, and yet in a cell: memory that could be
/// written and begins as zeroes has no bytes in the program's file.
#[repr(align(4096))]
struct Zeroes(UnsafeCell<[u8; Segment::ZEROES_MAX]>);

// SAFETY: threads only read.
unsafe impl Sync for Zeroes {}

impl Zeroes {
    fn get(&self) -> &[u8; Segment::ZEROES_MAX] {
        // SAFETY: nothing writes, so no reference is exclusive.
        unsafe { &*self.0.get() }
    }
}

/// A read-only range of bytes of a shared buffer, or of zeroes. Dereferences to `[u8]`.
#[derive(Clone)]
pub struct Segment {
    /// The bytes `start..start + length` are initialised, allocated as long as `owner` exists, and
    /// not written until then.
    start: NonNull<u8>,
    length: usize,
    owner: Owner,
}

// SAFETY: a segment only reads, and its owner may be sent to and used by any thread.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// What keeps the bytes of a segment.
#[derive(Clone)]
enum Owner {
    /// The zeroes of the program.
    Zeroes,
    /// A buffer that became segments as a whole.
    Frozen(#[expect(dead_code, reason = "owns")] Share),
    /// Other segments may view it too, and its owner may get it back after all of them.
    Buffer(#[expect(dead_code, reason = "owns")] Arc<Buffer>),
    /// Memory of a caller: unaligned, so only for devices that take any alignment.
    Shared(#[expect(dead_code, reason = "owns")] Arc<Vec<u8>>),
}

impl Segment {
    /// Most bytes in one segment of zeroes; [`SegmentList::push_zeroes`] has no limit.
    pub const ZEROES_MAX: usize = 64 << 10;

    /// The bytes `range` of `buffer`.
    ///
    /// # Panics
    /// When the range is not inside the buffer, as indexing a slice does.
    #[must_use]
    pub fn new(buffer: &Arc<Buffer>, range: Range<usize>) -> Self {
        Self::view(&buffer[range], Owner::Buffer(Arc::clone(buffer)))
    }

    /// The bytes `range` of memory that is not a [`Buffer`]: for instance one that a reader filled,
    /// handed on without a copy. It has no particular alignment.
    ///
    /// # Panics
    /// When the range is not inside the memory, as indexing a slice does.
    #[must_use]
    pub fn shared(memory: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self::view(&memory[range], Owner::Shared(Arc::clone(memory)))
    }

    /// [`ZEROES_MAX`](Self::ZEROES_MAX) zero bytes.
    #[must_use]
    pub fn zeroes() -> Self {
        Self::view(ZEROES.get(), Owner::Zeroes)
    }

    /// A segment of `bytes`, which live as long as `owner` and are not written until then: an
    /// `Arc` gives no exclusive reference to what this one shares.
    fn view(bytes: &[u8], owner: Owner) -> Self {
        Self { start: NonNull::from(bytes).cast(), length: bytes.len(), owner }
    }

    /// Cuts off the bytes from `at` on, without a copy; this segment keeps those before.
    ///
    /// # Panics
    /// When the segment is shorter than `at`, as splitting a slice does.
    #[must_use = "the bytes cut off are lost to this segment"]
    pub fn split_off(&mut self, at: usize) -> Self {
        let rest = Self::view(&self[at..], self.owner.clone());
        self.length = at;
        rest
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the invariant of `start`.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.length).as_ref() }
    }
}

impl From<Buffer> for Segment {
    /// The whole of `buffer`, without an allocation.
    fn from(buffer: Buffer) -> Self {
        let (start, length, share) = buffer.into_parts();
        Self { start, length, owner: Owner::Frozen(share) }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("zeroes", &matches!(self.owner, Owner::Zeroes))
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// The segments of one write, in order. One fits without an allocation; more would make every bio
/// too large to be copied without a call.
#[derive(Clone, Debug, Default)]
pub struct SegmentList {
    segments: SmallVec<[Segment; 1]>,
    bytes: u64,
}

impl SegmentList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `segment`; an empty one is left out.
    pub fn push(&mut self, segment: Segment) {
        if segment.length > 0 {
            self.bytes += segment.length as u64;
            self.segments.push(segment);
        }
    }

    /// Appends `length` zero bytes.
    pub fn push_zeroes(&mut self, mut length: usize) {
        while length > 0 {
            let piece = length.min(Segment::ZEROES_MAX);
            self.push(Segment::view(&ZEROES.get()[..piece], Owner::Zeroes));
            length -= piece;
        }
    }

    /// Appends zeroes until the total is a multiple of `unit` bytes (a block or sector size).
    pub fn pad_to(&mut self, unit: usize) {
        let rest = self.bytes.next_multiple_of(unit as u64) - self.bytes;
        // The rest is below `unit`, which is a usize.
        self.push_zeroes(rest as usize);
    }

    /// Cuts off everything from byte `at` on, without a copy; this list keeps the bytes before it.
    ///
    /// # Panics
    /// When the list has fewer bytes than `at`.
    #[must_use = "the segments cut off are lost to this list"]
    pub fn split_off(&mut self, at: u64) -> Self {
        assert!(at <= self.bytes, "a split at {at} of {} bytes", self.bytes);
        let mut rest = Self::new();
        let mut before = 0;
        let mut kept = 0;
        for segment in &mut self.segments {
            let end = before + segment.length as u64;
            if end <= at {
                kept += 1;
            } else if before < at {
                kept += 1;
                // Below the length of the segment, which is a usize.
                rest.push(segment.split_off((at - before) as usize));
            } else {
                rest.push(segment.clone());
            }
            before = end;
        }
        self.segments.truncate(kept);
        self.bytes = at;
        rest
    }

    /// The same bytes in memory that fits a device whose
    /// [`memory_alignment`](crate::Limits::memory_alignment) is `unit`: a copy, unless they are in
    /// such memory already. For a total that is a multiple of `unit`.
    #[must_use]
    pub fn aligned_to(self, unit: usize) -> Self {
        if self.iter().all(|segment| is_aligned(segment, unit)) {
            return self;
        }
        let bytes = self.iter().map(|segment| segment.len()).sum();
        let mut buffer = Buffer::zeroed(bytes);
        gather(self.iter().map(|segment| &segment[..]), &mut buffer);
        buffer.into()
    }

    /// Total length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The segments in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Segment> {
        self.segments.iter()
    }

    /// Number of segments.
    #[must_use]
    pub fn count(&self) -> usize {
        self.segments.len()
    }
}

/// Copies `pieces` one after the other to `target`, which has room for them.
pub(crate) fn gather<'a>(pieces: impl Iterator<Item = &'a [u8]>, target: &mut [u8]) {
    let mut rest = target;
    for piece in pieces {
        let (front, behind) = rest.split_at_mut(piece.len());
        front.copy_from_slice(piece);
        rest = behind;
    }
}

/// Whether `memory` starts and ends at multiples of `unit`.
pub(crate) fn is_aligned(memory: &[u8], unit: usize) -> bool {
    memory.as_ptr().addr().is_multiple_of(unit) && memory.len().is_multiple_of(unit)
}

impl<'a> IntoIterator for &'a SegmentList {
    type Item = &'a Segment;
    type IntoIter = std::slice::Iter<'a, Segment>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Segment> for SegmentList {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        let mut list = Self::new();
        segments.into_iter().for_each(|segment| list.push(segment));
        list
    }
}

impl From<Segment> for SegmentList {
    fn from(segment: Segment) -> Self {
        Self::from_iter([segment])
    }
}

impl From<Buffer> for SegmentList {
    fn from(buffer: Buffer) -> Self {
        Segment::from(buffer).into()
    }
}

impl From<Vec<Segment>> for SegmentList {
    fn from(segments: Vec<Segment>) -> Self {
        Self::from_iter(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_view_their_range() {
        let buffer = Arc::new(Buffer::copy_of(b"a file and another"));
        assert_eq!(&Segment::new(&buffer, 2..6)[..], b"file");
        assert!(Segment::new(&buffer, 18..18).is_empty());
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_segment_outside_its_buffer_panics() {
        let _ = Segment::new(&Arc::new(Buffer::zeroed(10)), 5..11);
    }

    #[test]
    fn only_what_does_not_fit_a_device_is_copied() {
        let buffer = Arc::new(Buffer::copy_of(&(0..2048).map(|at| at as u8).collect::<Vec<_>>()));
        let list = |ranges: &[Range<usize>]| -> SegmentList {
            ranges.iter().map(|range| Segment::new(&buffer, range.clone())).collect()
        };
        let fits = list(&[512..1024, 0..512]).aligned_to(512);
        assert!(
            fits.iter()
                .map(|segment| segment.as_ptr())
                .eq([buffer[512..].as_ptr(), buffer.as_ptr()])
        );
        let mut odd = list(&[3..300, 1000..1010]);
        odd.pad_to(512);
        let copied = odd.aligned_to(512);
        assert_eq!((copied.count(), copied.bytes()), (1, 512));
        let bytes = &copied.iter().next().unwrap()[..];
        assert!(is_aligned(bytes, 512));
        assert_eq!(bytes[..307], [&buffer[3..300], &buffer[1000..1010]].concat());
        assert!(bytes[307..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn splitting_a_list_cuts_at_and_inside_segments() {
        let list =
            || SegmentList::from_iter([b"one", b"two"].map(|text| Buffer::copy_of(text).into()));
        for at in 0..=6 {
            let mut front = list();
            let back = front.split_off(at);
            let bytes = |list: &SegmentList| -> Vec<u8> {
                list.iter().flat_map(|segment| segment.iter().copied()).collect()
            };
            assert_eq!((front.bytes(), back.bytes()), (at, 6 - at));
            assert_eq!([bytes(&front), bytes(&back)].concat(), b"onetwo");
            assert!(front.iter().chain(&back).all(|segment| !segment.is_empty()));
        }
    }

    #[test]
    fn padding_fills_up_to_the_unit() {
        let mut list = SegmentList::from(Buffer::copy_of(b"tail"));
        list.pad_to(512);
        assert_eq!(list.bytes(), 512);
        list.pad_to(512);
        assert_eq!(list.bytes(), 512);
        let bytes: Vec<u8> = list.iter().flat_map(|segment| segment.iter().copied()).collect();
        assert_eq!(&bytes[..4], b"tail");
        assert!(bytes[4..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn long_runs_of_zeroes_take_several_segments() {
        let mut list = SegmentList::new();
        list.push_zeroes(3 * Segment::ZEROES_MAX + 1);
        assert_eq!(list.count(), 4);
        assert_eq!(list.bytes(), 3 * Segment::ZEROES_MAX as u64 + 1);
    }
}
