//! Allocated memory: pages by themselves, or a part of a larger allocation.
#![allow(unsafe_code, reason = "allocation, and parts of one")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment of every buffer in bytes, and the unit in which memory is allocated.
///
/// It is that of the pages of the kernel, so that copies to and from those are quick on every processor.
/// Zen 3 copies a quarter to an eighth of the bytes a second where the destination is 1 to 31 bytes further
/// in its page than the source, and long memory of `malloc` begins 16 bytes behind a page.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// An allocation that is given out in parts.
pub(crate) trait Lender: Send + Sync {
    /// All of it. Its bytes belong to the owners of the parts.
    fn memory(&self) -> &Memory;

    /// Takes the part of `bytes` bytes at `offset` back.
    fn give_back(&self, offset: usize, bytes: usize);
}

/// Initialised memory of whole pages, owned by this value: nothing else points into it.
pub(crate) struct Memory {
    start: NonNull<u8>,
    /// A multiple of [`BUFFER_ALIGNMENT`], at most `isize::MAX`.
    bytes: usize,
    /// The allocation it is a part of; `None` if it is one by itself.
    lender: Option<Arc<dyn Lender>>,
}

// SAFETY: the memory is owned, as that of a `Box<[u8]>` is, and not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives away an address and a length, no access to the bytes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `pages` zeroed pages; none take no memory.
    ///
    /// Out of memory ends the process, as for every allocation of the standard library.
    pub(crate) fn zeroed(pages: usize) -> Self {
        let bytes = pages.saturating_mul(BUFFER_ALIGNMENT);
        if bytes == 0 {
            return Self { start: NonNull::<Page>::dangling().cast(), bytes, lender: None };
        }
        let Some(layout) = Self::layout(bytes) else {
            handle_alloc_error(Layout::new::<Page>());
        };
        // SAFETY: the layout is not of zero bytes.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, bytes, lender: None }
    }

    /// How memory of `bytes` bytes is allocated; `None` for more than an address space holds.
    fn layout(bytes: usize) -> Option<Layout> {
        Layout::from_size_align(bytes, BUFFER_ALIGNMENT).ok()
    }

    /// The `bytes` bytes from `offset` on of the memory of `lender`, which gives them to no other
    /// until they come back.
    pub(crate) fn part_of(lender: Arc<dyn Lender>, offset: usize, bytes: usize) -> Self {
        let whole = lender.memory();
        assert!(offset <= whole.bytes && bytes <= whole.bytes - offset, "a part of an arena");
        // SAFETY: inside the allocation, as was just checked.
        let start = unsafe { whole.start.add(offset) };
        Self { start, bytes, lender: Some(lender) }
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes, whole pages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(lender) = self.lender.take() {
            // Not negative: the address lies in the memory of the lender.
            let offset = self.start.addr().get() - lender.memory().start.addr().get();
            lender.give_back(offset, self.bytes);
        } else if self.bytes > 0
            && let Some(layout) = Self::layout(self.bytes)
        {
            // SAFETY: allocated in `zeroed` with this layout, and owned by this value alone.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// A page, for its alignment.
#[repr(align(4096))]
struct Page;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_takes_no_memory_and_is_aligned() {
        let memory = Memory::zeroed(0);
        assert_eq!(memory.bytes(), 0);
        assert!(memory.start().addr().get().is_multiple_of(BUFFER_ALIGNMENT));
    }
}
