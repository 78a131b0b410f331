//! The buffers that a thread has open in the cache.

use std::cell::RefCell;
use undercroft_locks::CHECKED;

thread_local! {
    /// Addresses of the buffers that this thread has open for reading, in builds that check locks.
    static OPENED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Says that the thread has a buffer open, as long as it lives. Where locks are checked, a thread
/// that opens one again panics: with a writer waiting in between, it would wait for itself.
#[derive(Debug)]
pub(super) struct OpenBuffer(usize);

impl OpenBuffer {
    /// Records that the buffer at `address` is about to be opened for reading.
    #[inline]
    pub(super) fn new<T>(buffer: &T) -> Self {
        let address = expect_closed(buffer);
        if CHECKED {
            OPENED.with_borrow_mut(|opened| opened.push(address));
        }
        Self(address)
    }
}

impl Drop for OpenBuffer {
    #[inline]
    fn drop(&mut self) {
        if CHECKED {
            // A thread that is ending checks nothing any more.
            let _ = OPENED.try_with(|opened| {
                let mut opened = opened.borrow_mut();
                if let Some(index) = opened.iter().rposition(|address| *address == self.0) {
                    opened.swap_remove(index);
                }
            });
        }
    }
}

/// Panics, where locks are checked, if this thread has the buffer open; returns its address.
#[inline]
pub(super) fn expect_closed<T>(buffer: &T) -> usize {
    let address = std::ptr::from_ref(buffer).addr();
    if CHECKED {
        let is_open = OPENED.try_with(|opened| opened.borrow().contains(&address));
        assert!(!is_open.unwrap_or(false), "this thread has the buffer open already");
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "open already")]
    fn a_buffer_is_not_opened_twice() {
        let (one, other) = (1_u64, 2_u64);
        drop(OpenBuffer::new(&one));
        let _one = OpenBuffer::new(&one);
        let _other = OpenBuffer::new(&other);
        drop(OpenBuffer::new(&one));
    }
}
