//! The bytes of a write that were copied, where copies to and from them are quick.

use std::fmt;
use std::ops::Deref;

use undercroft_block::BUFFER_ALIGNMENT;

/// Memory in front of the bytes where they would begin with a page otherwise, or a little behind.
///
/// [Some processors copy slowly](BUFFER_ALIGNMENT) to a place that is a little further in its page than the
/// source. Memory of submitters begins with a page, so these bytes must not begin a little behind one; and
/// they are copied to a socket a little behind one, after the header of the request.
pub(crate) const FRONT: usize = 64;

/// Bytes that do not change.
pub(crate) struct CopiedBytes {
    memory: Vec<u8>,
    /// Where in the memory they begin.
    front: usize,
}

impl CopiedBytes {
    /// Copies `pieces`, of `length` bytes in all, to `memory`, whose contents are of no account. It grows
    /// if its capacity is less than `length` and [`FRONT`].
    pub(crate) fn new<'p>(
        pieces: impl Iterator<Item = &'p [u8]>,
        length: usize,
        mut memory: Vec<u8>,
    ) -> Self {
        memory.clear();
        memory.reserve_exact(length + FRONT);
        let front = if memory.as_ptr().addr() % BUFFER_ALIGNMENT < FRONT { FRONT } else { 0 };
        memory.resize(front, 0);
        pieces.for_each(|piece| memory.extend_from_slice(piece));
        Self { memory, front }
    }

    /// The memory, to be used again.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.memory
    }
}

impl Deref for CopiedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.front..]
    }
}

/// Takes bytes where they are.
impl From<Vec<u8>> for CopiedBytes {
    fn from(memory: Vec<u8>) -> Self {
        Self { memory, front: 0 }
    }
}

impl fmt::Debug for CopiedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopiedBytes").field("length", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_begin_neither_with_a_page_nor_just_behind() {
        // Long memory begins 16 bytes behind a page at first.
        let mut memory = Vec::new();
        for length in [0, 1, 4096, 1 << 18, 1 << 20, 5000, 1 << 22] {
            let bytes: Vec<u8> = (0..length).map(|place: usize| place as u8).collect();
            let (one, other) = bytes.split_at(length / 3);
            let copied = CopiedBytes::new([one, other].into_iter(), length, memory);
            assert!(copied[..] == bytes[..]);
            assert!(copied.as_ptr().addr() % BUFFER_ALIGNMENT >= FRONT);
            memory = copied.into_memory();
        }
    }

    #[test]
    fn memory_with_room_is_not_moved() {
        let memory = Vec::with_capacity(100 + FRONT);
        let place = memory.as_ptr();
        let memory = CopiedBytes::new([&[7; 100][..]].into_iter(), 100, memory).into_memory();
        assert_eq!(memory.as_ptr(), place);
    }
}
