//! Memory for I/O: owned, page-aligned, always initialised.
//!
//! A [`Buffer`] has one owner and may be written; it travels inside a read bio and comes back in
//! its completion. To write from it, put it in an `Arc` and cut [`Segment`](crate::Segment)s.
//! The memory is a slice of page-aligned elements, so no unsafe code is needed for the alignment
//! that direct I/O and registered rings ask for.

use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::pool::PoolShared;

/// Alignment of every buffer in bytes, and the unit in which memory is allocated.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// One page of memory; exists to give slices of bytes the alignment of a page.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
pub(crate) struct Page([u8; BUFFER_ALIGNMENT]);

impl Page {
    /// A page of zeroes.
    pub(crate) const ZERO: Self = Self([0; BUFFER_ALIGNMENT]);
}

/// Allocates `count` zeroed pages; the kernel supplies large ones untouched.
///
/// Out of memory ends the process, as for every allocation of the standard library.
pub(crate) fn zeroed_pages(count: usize) -> Box<[Page]> {
    <[Page]>::new_box_zeroed_with_elems(count).unwrap_or_else(|_| {
        handle_alloc_error(Layout::array::<Page>(count).unwrap_or(Layout::new::<Page>()))
    })
}

/// Owned memory of a fixed length in bytes, aligned to [`BUFFER_ALIGNMENT`].
///
/// Dereferences to `[u8]`. A buffer from a [`BufferPool`](crate::BufferPool) returns to it when
/// dropped, wherever that happens.
pub struct Buffer {
    /// At least `length` bytes of pages; empty only after the drop returned them.
    pages: Box<[Page]>,
    /// Bytes that the owner asked for.
    length: usize,
    /// Where the pages go on drop.
    pool: Option<Arc<PoolShared>>,
}

impl Buffer {
    /// A buffer of `length` zero bytes outside any pool.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        Self { pages: zeroed_pages(length.div_ceil(BUFFER_ALIGNMENT)), length, pool: None }
    }

    /// A buffer outside any pool that holds a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// The first `length` bytes of `pages`, which belong to `pool`.
    pub(crate) fn pooled(pages: Box<[Page]>, length: usize, pool: Arc<PoolShared>) -> Self {
        debug_assert!(length <= pages.len() * BUFFER_ALIGNMENT);
        Self { pages, length, pool: Some(pool) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages.as_bytes()[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_bytes()[..self.length]
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
            .field("pooled", &self.pool.is_some())
            .finish_non_exhaustive()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.put(std::mem::take(&mut self.pages));
        }
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
            assert_eq!(buffer.as_ptr().align_offset(BUFFER_ALIGNMENT), 0);
            assert!(buffer.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn a_copy_holds_the_bytes() {
        assert_eq!(&Buffer::copy_of(b"undercroft")[..], b"undercroft");
    }
}
