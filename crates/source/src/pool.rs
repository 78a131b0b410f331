//! Buffers for file data that are used again once every chunk of them is dropped.
//!
//! A new buffer costs a page fault for every 4096 bytes, as much as filling it; a used one costs nothing.

use crate::Chunk;
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes of data in one buffer: large enough that system calls and reference counts vanish, small
/// enough that a few dozen fit a processor's last-level cache.
pub(crate) const BUFFER_SIZE: usize = 1024 * 1024;
/// Bytes beyond [`BUFFER_SIZE`], so that a reader can ask for one byte more than a file should have.
pub(crate) const BUFFER_SLACK: usize = 64;
/// Bytes from which on a piece gets a buffer of the pool: many short pieces, each in a large buffer,
/// would keep much memory on its way.
const POOLED_MIN: usize = BUFFER_SIZE / 4;
/// Bytes below which what was put into a buffer is copied when it is handed out, for the same reason.
const COPIED_BELOW: usize = BUFFER_SIZE / 16;
/// Most buffers kept for later use.
const KEPT: usize = 64;

/// The buffers of one source. All are `BUFFER_SIZE + BUFFER_SLACK` bytes long.
#[derive(Debug, Default)]
pub struct BufferPool {
    /// Shared buffers, oldest first; one without other references is free.
    shared: Mutex<Vec<Arc<Vec<u8>>>>,
}

impl BufferPool {
    /// A buffer without other references, with arbitrary contents: the one filled last, which may
    /// still be in the caches of the processor. Never waits: when none is free, a new one is made.
    pub(crate) fn take(&self) -> Arc<Vec<u8>> {
        let mut shared = self.shared.lock();
        let free = shared.iter_mut().rposition(|buffer| Arc::get_mut(buffer).is_some());
        match free {
            Some(index) => shared.remove(index),
            None => Arc::new(vec![0; BUFFER_SIZE + BUFFER_SLACK]),
        }
    }

    /// A buffer that `fill` has filled, and what it returned. It comes back after its last holder let go.
    pub(crate) fn filled<T, E>(
        &self,
        fill: impl FnOnce(&mut [u8]) -> Result<T, E>,
    ) -> Result<(Arc<Vec<u8>>, T), E> {
        let mut shared = self.take();
        let buffer =
            Arc::get_mut(&mut shared).expect("a buffer that was taken has no other holder");
        let result = fill(buffer)?;
        self.keep(&shared);
        Ok((shared, result))
    }

    /// A piece of at most `length` bytes, or of a mebibyte: as many as `fill` says that it has put at
    /// the start of the space it is given.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn piece<E>(
        &self,
        length: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Chunk, E> {
        let wanted = length.min(BUFFER_SIZE as u64) as usize;
        if wanted >= POOLED_MIN {
            let (buffer, count) = self.filled(|space| fill(&mut space[..wanted]))?;
            return Ok(Chunk::new(buffer, 0..count.min(wanted)));
        }
        let mut buffer = vec![0; wanted];
        let count = fill(&mut buffer)?;
        Ok(Chunk::new(Arc::new(buffer), 0..count.min(wanted)))
    }

    /// The first `length` bytes of a buffer that is being filled. They go with the buffer, and another
    /// comes in its place; where they are few they are copied.
    pub(crate) fn hand_out(&self, buffer: &mut Arc<Vec<u8>>, length: usize) -> Arc<Vec<u8>> {
        if length < COPIED_BELOW {
            return Arc::new(buffer[..length].to_vec());
        }
        let full = std::mem::replace(buffer, self.take());
        self.keep(&full);
        full
    }

    /// Remembers a buffer that is filled and about to be handed out.
    fn keep(&self, buffer: &Arc<Vec<u8>>) {
        let mut shared = self.shared.lock();
        if shared.len() < KEPT {
            shared.push(Arc::clone(buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bytes_do_not_take_a_buffer_with_them() {
        let pool = BufferPool::default();
        let mut buffer = pool.take();
        let address = buffer.as_ptr();
        Arc::get_mut(&mut buffer).unwrap()[..3].copy_from_slice(b"few");
        assert_eq!(*pool.hand_out(&mut buffer, 3), b"few");
        assert_eq!(buffer.as_ptr(), address);
        let much = pool.hand_out(&mut buffer, COPIED_BELOW);
        assert_eq!((much.as_ptr(), &much[..3]), (address, &b"few"[..]));
        assert_ne!(buffer.as_ptr(), address);
        assert!(Arc::get_mut(&mut buffer).is_some());
    }

    #[test]
    fn a_buffer_comes_back_only_after_its_last_holder_let_go() {
        let pool = BufferPool::default();
        let first = pool.take();
        let address = first.as_ptr();
        pool.keep(&first);
        let second = pool.take();
        assert_ne!(second.as_ptr(), address);
        let chunk = Chunk::new(first, 3..5);
        assert_ne!(pool.take().as_ptr(), address);
        drop(chunk);
        let mut again = pool.take();
        assert_eq!(again.as_ptr(), address);
        assert!(Arc::get_mut(&mut again).is_some());
    }
}
