//! Read-only views of shared memory: what a write bio is made of.
//!
//! Many bios may point into one large buffer (a chunk of an archive that holds a hundred small
//! files) and leave the device as one request without a copy. Zeroes for padding point to static
//! memory, so they cost neither memory nor a reference count.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use smallvec::SmallVec;
use zerocopy::IntoBytes;

use crate::buffer::{BUFFER_ALIGNMENT, Buffer, Page};

const ZERO_PAGES: usize = 16;

/// Source of all padding.
static ZEROES: [Page; ZERO_PAGES] = [const { Page::ZERO }; ZERO_PAGES];

/// A read-only range of bytes of a shared buffer, or of zeroes. Dereferences to `[u8]`.
#[derive(Clone)]
pub struct Segment {
    memory: Memory,
    offset: usize,
    length: usize,
}

/// What a segment views.
#[derive(Clone)]
enum Memory {
    Zeroes,
    Buffer(Arc<Buffer>),
    /// Memory of somebody else's: unaligned, so only for devices that take any alignment.
    Shared(Arc<Vec<u8>>),
}

impl Segment {
    /// Most bytes in one segment of zeroes; [`SegmentList::push_zeroes`] has no limit.
    pub const ZEROES_MAX: usize = ZERO_PAGES * BUFFER_ALIGNMENT;

    /// The bytes `range` of `buffer`.
    ///
    /// # Panics
    /// When the range is not inside the buffer, as indexing a slice does.
    #[must_use]
    pub fn new(buffer: &Arc<Buffer>, range: Range<usize>) -> Self {
        let length = buffer[range.clone()].len();
        Self { memory: Memory::Buffer(Arc::clone(buffer)), offset: range.start, length }
    }

    /// The bytes `range` of memory that is not a [`Buffer`]: whatever a reader filled, handed on
    /// without a copy. It has no alignment to speak of.
    ///
    /// # Panics
    /// When the range is not inside the memory, as indexing a slice does.
    #[must_use]
    pub fn shared(memory: &Arc<Vec<u8>>, range: Range<usize>) -> Self {
        let length = memory[range.clone()].len();
        Self { memory: Memory::Shared(Arc::clone(memory)), offset: range.start, length }
    }

    /// [`ZEROES_MAX`](Self::ZEROES_MAX) zero bytes.
    #[must_use]
    pub fn zeroes() -> Self {
        Self { memory: Memory::Zeroes, offset: 0, length: Self::ZEROES_MAX }
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.memory {
            Memory::Buffer(buffer) => buffer,
            Memory::Shared(memory) => memory,
            Memory::Zeroes => ZEROES.as_bytes(),
        };
        &bytes[self.offset..self.offset + self.length]
    }
}

impl From<Buffer> for Segment {
    /// The whole of `buffer`.
    fn from(buffer: Buffer) -> Self {
        let length = buffer.len();
        Self { memory: Memory::Buffer(Arc::new(buffer)), offset: 0, length }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("zeroes", &matches!(self.memory, Memory::Zeroes))
            .field("offset", &self.offset)
            .field("length", &self.length)
            .finish()
    }
}

/// The segments of one write, in order; two fit without an allocation (contents and padding).
#[derive(Clone, Debug, Default)]
pub struct SegmentList {
    segments: SmallVec<[Segment; 2]>,
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
            self.push(Segment { length: piece, ..Segment::zeroes() });
            length -= piece;
        }
    }

    /// Appends zeroes until the total is a multiple of `unit` bytes (a block or sector size).
    pub fn pad_to(&mut self, unit: usize) {
        let rest = self.bytes.next_multiple_of(unit as u64) - self.bytes;
        // The rest is below `unit`, which is a usize.
        self.push_zeroes(rest as usize);
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
