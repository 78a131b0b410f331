//! Buffers on their way to their places.

use super::buffer::BufferRef;
use crate::units::Lsn;

/// A buffer that was written to its place, and the position that it pinned then.
#[derive(Debug)]
pub(crate) struct WrittenBuffer {
    pub(crate) buffer: BufferRef,
    pub(crate) tail: Lsn,
}

impl WrittenBuffer {
    /// The write is durable.
    pub(crate) fn set_durable(&self) {
        let mut content = self.buffer.content();
        content.log.writing = false;
        content.log.in_flight.clear();
        let next = std::mem::take(&mut content.log.next_tail);
        if content.log.tail == self.tail {
            content.log.tail = next;
        }
    }
}
