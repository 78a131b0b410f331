//! Pieces of file data that are shared, not copied.

use std::ops::Range;
use std::sync::Arc;

/// A run of bytes in a shared buffer. Cloning is one reference count; the buffer returns to the
/// source's pool when the last chunk of it is dropped, so hold chunks no longer than their writes take.
#[derive(Debug, Clone)]
pub struct Chunk {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
    padding: usize,
}

impl Chunk {
    /// `range` of `buffer`, followed by at least `padding` zero bytes. Both must lie in the buffer.
    pub(crate) fn new(buffer: Arc<Vec<u8>>, range: Range<usize>, padding: usize) -> Self {
        debug_assert!(range.start <= range.end && range.end + padding <= buffer.len());
        debug_assert!(buffer[range.end..range.end + padding].iter().all(|&byte| byte == 0));
        Self { buffer, range, padding }
    }

    /// The data.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    /// Number of bytes of data; never 0 in what a source delivers.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Number of zero bytes that follow the data in the buffer and belong to this chunk: a consumer
    /// that writes whole sectors or blocks can extend [`range`](Self::range) by up to this many bytes
    /// without a copy. A directory source pads the end of each range to 4096 bytes, counted from the
    /// start of the data in the buffer; an archive to 512 where the archive's own padding is zero.
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// The buffer that holds the data.
    pub fn buffer(&self) -> &Arc<Vec<u8>> {
        &self.buffer
    }

    /// Where in [`buffer`](Self::buffer) the data is, without padding.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
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
