//! A list that many threads push to and one thread empties at once, without locks.
//!
//! A push tells whether the list was empty: only then has the thread that empties it to be woken.
//! That thread sleeps after it found the list empty. If something is pushed before it sleeps, that
//! push found the list empty and wakes it, which [`Parking`](super::sync::Parking) remembers: no
//! push is slept through. The model checks it.
#![allow(unsafe_code, reason = "nodes of a lock-free list")]

use std::marker::PhantomData;
use std::ptr;

use super::sync::{AtomicPtr, Ordering};

/// Last in, first out for pushes; [`take_all`](Self::take_all) turns it round.
pub(crate) struct PushList<T> {
    /// The last node pushed, or null. Owns the nodes behind it.
    head: AtomicPtr<Node<T>>,
    _owns: PhantomData<Node<T>>,
}

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

// SAFETY: a value is moved in by one thread and out by another, never shared.
unsafe impl<T: Send> Send for PushList<T> {}
// SAFETY: as above; nodes in the list are reached by nobody.
unsafe impl<T: Send> Sync for PushList<T> {}

impl<T> PushList<T> {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
    }

    /// Adds `value`; returns whether the list was empty.
    pub(crate) fn push(&self, value: T) -> bool {
        let mut head = self.head.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { value, next: head }));
        loop {
            // Release: the node is written before anybody can take it.
            match self.head.compare_exchange(head, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return head.is_null(),
                Err(other) => {
                    head = other;
                    // SAFETY: the node is not in the list yet, so it is ours alone.
                    unsafe { (*node).next = head };
                }
            }
        }
    }

    /// Whether there was nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire).is_null()
    }

    /// Takes everything out, oldest first.
    pub(crate) fn take_all(&self) -> Vec<T> {
        // Acquire: see what was written before the pushes. There is no other way out of the list,
        // so a node is never freed while a push compares with it and linked again (ABA).
        let mut head = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        let mut values = Vec::new();
        while !head.is_null() {
            // SAFETY: made by `Box::into_raw` in `push`; the swap made this thread the owner.
            let node = unsafe { Box::from_raw(head) };
            head = node.next;
            values.push(node.value);
        }
        values.reverse();
        values
    }
}

impl<T> Drop for PushList<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::threads::sync::Parking;

    #[test]
    fn values_come_out_in_order_and_the_first_push_says_so() {
        let list = PushList::new();
        assert!(list.push(1));
        assert!(!list.push(2));
        assert_eq!(list.take_all(), [1, 2]);
        assert!(list.take_all().is_empty());
        assert!(list.push(3), "dropped with the list");
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const VALUES: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let list = PushList::new();
        let sleeper = Parking::current();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (list, sleeper) = (&list, sleeper.clone());
                scope.spawn(move || {
                    for value in 0..VALUES {
                        if list.push(thread * VALUES + value) {
                            sleeper.unpark();
                        }
                    }
                });
            }
            let mut last = [None; 3];
            let mut count = 0;
            while count < 3 * VALUES {
                let values = list.take_all();
                if values.is_empty() {
                    sleeper.park(None);
                }
                for value in values {
                    let seen = &mut last[(value / VALUES) as usize];
                    assert!(*seen < Some(value), "the order of each thread is kept");
                    *seen = Some(value);
                    count += 1;
                }
            }
        });
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::threads::sync::Parking;

    #[test]
    fn the_thread_that_empties_the_list_sleeps_through_nothing() {
        // Three threads have too many interleavings for all of them.
        crate::threads::sync::model_with_preemptions(2, || {
            let list = Arc::new(PushList::new());
            let sleeper = Parking::current();
            let pushers: Vec<_> = (0..2)
                .map(|value| {
                    let (list, sleeper) = (Arc::clone(&list), sleeper.clone());
                    thread::spawn(move || {
                        if list.push(value) {
                            sleeper.unpark();
                        }
                    })
                })
                .collect();
            let mut taken = Vec::new();
            while taken.len() < 2 {
                let values = list.take_all();
                if values.is_empty() {
                    sleeper.park(None);
                }
                taken.extend(values);
            }
            taken.sort_unstable();
            assert_eq!(taken, [0, 1]);
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        });
    }
}
