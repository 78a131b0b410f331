//! The address of a thread that sleeps in a ring.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Wake;

use crate::threads::Wakeup;

/// The address of a ring, for messages from other rings. Keeps the descriptor open, not the thread.
#[derive(Clone, Debug)]
pub struct Bell {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// A duplicate of the ring's descriptor.
    ring: OwnedFd,
    /// For messages that could not be delivered.
    wakeup: Arc<Wakeup>,
}

impl Bell {
    /// That of a thread which sleeps in `ring`, a duplicate of the ring's descriptor, until it is
    /// woken.
    pub(crate) fn new(ring: OwnedFd, wakeup: &Arc<Wakeup>) -> Self {
        Self { inner: Arc::new(Inner { ring, wakeup: Arc::clone(wakeup) }) }
    }

    /// The ring, for a message.
    pub(crate) fn ring(&self) -> &OwnedFd {
        &self.inner.ring
    }

    /// Wakes the thread without a message.
    pub(crate) fn wake(&self) {
        self.inner.wakeup.wake_by_ref();
    }

    /// Whether both are of one ring.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
