//! Pieces of file data that are shared, not copied.

use std::ops::Range;
use std::sync::Arc;

/// A run of bytes in a shared buffer. Cloning is one reference count; the buffer returns to the
/// source's pool when the last chunk of it is dropped, so hold chunks no longer than their writes take.
#[derive(Debug, Clone)]
pub struct Chunk {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Chunk {
    /// `range` of `buffer`, which must lie in it.
    pub(crate) fn new(buffer: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= buffer.len());
        Self { buffer, range }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    /// Number of bytes; never 0 in what a source delivers.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The buffer that holds the bytes, with those of other chunks around them.
    pub fn buffer(&self) -> &Arc<Vec<u8>> {
        &self.buffer
    }

    /// Where in [`buffer`](Self::buffer) the bytes are.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Cuts off the first `length` bytes (or all there are) and returns them.
    pub(crate) fn take_front(&mut self, length: usize) -> Self {
        let middle = self.range.start + length.min(self.range.len());
        let front = Self::new(Arc::clone(&self.buffer), self.range.start..middle);
        self.range.start = middle;
        front
    }
}

/// A piece of the current file's data.
#[derive(Debug, Clone)]
pub struct Data {
    /// Where in the file the piece starts, in bytes.
    pub offset: u64,
    /// The bytes.
    pub chunk: Chunk,
}
