//! Memory for I/O: owned, page-aligned, always initialised.
//!
//! A [`Buffer`] has one owner and may be written; it travels inside a read bio and comes back in
//! its completion. To write from it, hand it to [`Bio::write`](crate::Bio::write), or put it in an
//! `Arc` and cut [`Segment`](crate::Segment)s.
//!
//! A buffer can be cut into disjoint parts, each a buffer with an owner of its own, and put
//! together again, both without a copy: that is how a device spreads one read over several below.
#![allow(unsafe_code, reason = "parts of one allocation with different owners")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::allocation::{BUFFER_ALIGNMENT, Memory};
use super::region::{Keeper, Region, Share};

/// Owned memory of a fixed length in bytes, aligned to [`BUFFER_ALIGNMENT`] unless it is a part
/// that was cut off elsewhere.
///
/// Dereferences to `[u8]`. The memory goes back to its [`BufferPool`](crate::BufferPool), if it is
/// from one, when all parts of it are dropped, wherever that happens.
pub struct Buffer {
    /// The bytes `start..start + length` lie in the region of `share`, are initialised, and belong
    /// to this buffer alone: no other buffer or segment covers one of them.
    start: NonNull<u8>,
    length: usize,
    share: Share,
}

// SAFETY: it owns its bytes as a `Box<[u8]>` does.
unsafe impl Send for Buffer {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `length` zero bytes outside any pool.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        let region = Region::new(Memory::zeroed(length.div_ceil(BUFFER_ALIGNMENT)));
        Self::front_of(region, length, None)
    }

    /// A buffer outside any pool that holds a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// The first `length` bytes of `region`, which goes to `pool` afterwards.
    pub(crate) fn front_of(
        region: Box<Region>,
        length: usize,
        pool: Option<Arc<dyn Keeper>>,
    ) -> Self {
        assert!(length <= region.bytes(), "a buffer lies in its region");
        let share = region.share(pool);
        Self { start: share.start(), length, share }
    }

    /// Cuts off the bytes from `at` on, which become a buffer of their own; this one keeps those
    /// before. Both have the alignment of [`BUFFER_ALIGNMENT`] if `at` is a multiple of it.
    ///
    /// # Panics
    /// When the buffer is shorter than `at`, as splitting a slice does.
    #[must_use = "the bytes cut off are lost to this buffer"]
    pub fn split_off(&mut self, at: usize) -> Self {
        assert!(at <= self.length, "a split at {at} of a buffer of {} bytes", self.length);
        // SAFETY: at most one past the end of the allocation.
        let start = unsafe { self.start.add(at) };
        let rest = Self { start, length: self.length - at, share: self.share.clone() };
        self.length = at;
        rest
    }

    /// Appends `next`, which was cut off at the end of this buffer; undoes
    /// [`split_off`](Self::split_off).
    ///
    /// # Errors
    /// Gives `next` back if its bytes do not follow those of this buffer in one allocation.
    pub fn rejoin(&mut self, next: Self) -> Result<(), Self> {
        // SAFETY: at most one past the end of the allocation.
        let end = unsafe { self.start.add(self.length) };
        if end != next.start || !self.share.is_same(&next.share) {
            return Err(next);
        }
        self.length += next.length;
        Ok(())
    }

    /// Gives up the right to write: the parts for a segment, which upholds the invariant with
    /// read-only views.
    pub(crate) fn into_parts(self) -> (NonNull<u8>, usize, Share) {
        (self.start, self.length, self.share)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised, allocated as long as the share, and of no other
        // buffer.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.length).as_ref() }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; this buffer is borrowed exclusively.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.length).as_mut() }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("length", &self.length)
            .field("pooled", &self.share.is_pooled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_as_long_as_asked() {
        for length in [0, 1, 511, 4096, 4097, 1 << 20] {
            let buffer = Buffer::zeroed(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr().addr() % BUFFER_ALIGNMENT, 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn a_copy_holds_the_bytes() {
        assert_eq!(&Buffer::copy_of(b"undercroft")[..], b"undercroft");
    }

    #[test]
    fn parts_are_written_apart_and_rejoined_in_place() {
        let mut front = Buffer::zeroed(3 * BUFFER_ALIGNMENT);
        let address = front.as_ptr();
        let mut middle = front.split_off(BUFFER_ALIGNMENT);
        let mut back = middle.split_off(BUFFER_ALIGNMENT);
        std::thread::scope(|scope| {
            for (part, byte) in [(&mut front, 1), (&mut middle, 2), (&mut back, 3)] {
                scope.spawn(move || part.fill(byte));
            }
        });
        let back = front.rejoin(back).unwrap_err();
        front.rejoin(middle).unwrap();
        front.rejoin(back).unwrap();
        assert_eq!((front.as_ptr(), front.len()), (address, 3 * BUFFER_ALIGNMENT));
        for (page, byte) in front.chunks(BUFFER_ALIGNMENT).zip(1..) {
            assert!(page.iter().all(|&found| found == byte));
        }
    }

    #[test]
    fn empty_parts_are_harmless() {
        let mut buffer = Buffer::copy_of(b"abc");
        let end = buffer.split_off(3);
        assert!(end.is_empty());
        buffer.rejoin(end).unwrap();
        let all = buffer.split_off(0);
        assert_eq!((buffer.len(), &all[..]), (0, &b"abc"[..]));
        buffer.rejoin(all).unwrap();
        assert_eq!(&buffer[..], b"abc");
    }

    #[test]
    fn parts_of_different_buffers_are_not_joined() {
        let (mut one, other) = (Buffer::zeroed(4096), Buffer::zeroed(4096));
        let other = one.rejoin(other).unwrap_err();
        assert_eq!((one.len(), other.len()), (4096, 4096));
    }

    #[test]
    fn parts_outlive_each_other_in_any_order() {
        let mut front = Buffer::copy_of(&[7; 2 * BUFFER_ALIGNMENT]);
        let back = front.split_off(100);
        drop(front);
        assert!(std::thread::spawn(move || back.iter().all(|&byte| byte == 7)).join().unwrap());
    }

    #[test]
    #[should_panic(expected = "a split at 5")]
    fn a_split_behind_the_end_panics() {
        let _ = Buffer::zeroed(4).split_off(5);
    }
}
