//! Boxes that their thread uses again.
//!
//! Bios and requests are made and answered millions of times a second and handed from one list to
//! the next on the way. So each is a pointer to its contents, and a box whose value is done with
//! serves the next value of the same thread, without an allocator or a copy.
#![allow(unsafe_code, reason = "takes the box out of a value that ends")]

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// Most boxes that a thread keeps for each type: a plug's worth.
const SPARES_MAX: usize = 1024;

/// A `Box` from the spares of its thread, which goes to those of the thread that drops it.
pub(crate) struct Recycled<T: Recycle> {
    boxed: ManuallyDrop<Box<T>>,
}

/// What [`Recycled`] holds.
pub(crate) trait Recycle: Sized + 'static {
    /// A value for a new box.
    fn unused() -> Self;

    /// The spares of this thread; a `thread_local!` of each type.
    fn spares() -> &'static LocalKey<Spares<Self>>;

    /// Drops the contents of the value. The rest may stay as it is, for the next user to overwrite.
    fn clear(&mut self);
}

/// Boxes of one type with cleared values.
pub(crate) struct Spares<T> {
    /// Borrowed only inside of this module, where nothing else is called meanwhile.
    boxes: UnsafeCell<Vec<Box<T>>>,
}

impl<T> Spares<T> {
    pub(crate) const fn new() -> Self {
        Self { boxes: UnsafeCell::new(Vec::new()) }
    }

    #[inline]
    fn take(&self) -> Option<Box<T>> {
        // SAFETY: no other borrow lives, as `boxes` says, and the cell is one thread's.
        unsafe { (*self.boxes.get()).pop() }
    }

    /// Keeps `spare`, or gives it back if there are enough.
    #[inline]
    fn keep(&self, spare: Box<T>) -> Option<Box<T>> {
        // SAFETY: as above.
        let boxes = unsafe { &mut *self.boxes.get() };
        if boxes.len() >= SPARES_MAX {
            return Some(spare);
        }
        boxes.push(spare);
        None
    }
}

impl<T: Recycle> Recycled<T> {
    /// A box with a cleared value, to be filled in place.
    #[inline]
    pub(crate) fn cleared() -> Self {
        // A thread that is ending has no spares any more.
        let spare = T::spares().try_with(Spares::take).ok().flatten();
        Self { boxed: ManuallyDrop::new(spare.unwrap_or_else(|| Box::new(T::unused()))) }
    }
}

impl<T: Recycle> Drop for Recycled<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the box is not used again: this is the end of the value that holds it.
        let mut boxed = unsafe { ManuallyDrop::take(&mut self.boxed) };
        boxed.clear();
        // A box too many is freed outside of the closure.
        let _ = T::spares().try_with(|spares| spares.keep(boxed));
    }
}

impl<T: Recycle> Deref for Recycled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.boxed
    }
}

impl<T: Recycle> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.boxed
    }
}

impl<T: Recycle + fmt::Debug> fmt::Debug for Recycled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    struct Counted(Option<Rc<()>>);

    thread_local! {
        static SPARES: Spares<Counted> = const { Spares::new() };
    }

    impl Recycle for Counted {
        fn unused() -> Self {
            Self(None)
        }

        fn spares() -> &'static LocalKey<Spares<Self>> {
            &SPARES
        }

        fn clear(&mut self) {
            self.0 = None;
        }
    }

    fn counted(count: &Rc<()>) -> Recycled<Counted> {
        let mut boxed = Recycled::<Counted>::cleared();
        assert!(boxed.0.is_none());
        boxed.0 = Some(Rc::clone(count));
        boxed
    }

    fn address(boxed: &Recycled<Counted>) -> usize {
        std::ptr::from_ref(&**boxed).addr()
    }

    #[test]
    fn values_are_dropped_and_their_boxes_serve_again() {
        let count = Rc::new(());
        let (one, two) = (counted(&count), counted(&count));
        assert_eq!(Rc::strong_count(&count), 3);
        let addresses = [address(&one), address(&two)];
        drop((one, two));
        assert_eq!(Rc::strong_count(&count), 1);
        let again = [(); 2].map(|()| counted(&count));
        let mut found = again.each_ref().map(address);
        found.sort_unstable();
        let mut expected = addresses;
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_thread_keeps_no_more_than_a_plug_holds() {
        let count = Rc::new(());
        let values: Vec<_> = (0..2 * SPARES_MAX).map(|_| counted(&count)).collect();
        drop(values);
        assert_eq!(Rc::strong_count(&count), 1);
        // SAFETY: no other borrow lives.
        assert_eq!(SPARES.with(|spares| unsafe { (*spares.boxes.get()).len() }), SPARES_MAX);
    }
}
