//! How a waiter is told.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;

use crate::sync::Wake;

/// A callback of the dispatch side.
pub(crate) type Callback = Arc<dyn Fn() + Send + Sync>;

/// Tells one waiter that there may be a tag.
pub(crate) enum Signal {
    /// A thread that sleeps.
    Thread(Wake),
    /// A task of some executor.
    Task(Waker),
    /// A function, called by the thread that puts.
    Callback(Callback),
}

impl Signal {
    fn send(self) {
        match self {
            Self::Thread(wake) => wake.wake(),
            Self::Task(waker) => waker.wake(),
            Self::Callback(callback) => callback(),
        }
    }

    /// Whether a thread is told, which will look for a tag by itself.
    pub(crate) fn is_thread(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// For dumps.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Thread(_) => "thread",
            Self::Task(_) => "task",
            Self::Callback(_) => "callback",
        }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind())
    }
}

/// Signals of waiters that were taken out of their queue. They are sent without any lock held: a
/// waker or callback may get, put and wait again. Should one panic, the rest is sent all the same.
#[must_use = "a waiter taken out of its queue must be told"]
pub(crate) struct Signals(SmallVec<[Signal; 8]>);

impl Signals {
    pub(super) fn new(signals: SmallVec<[Signal; 8]>) -> Self {
        Self(signals)
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Sends all, first come first served.
    pub(crate) fn send(mut self) {
        self.0.reverse();
        self.send_rest();
    }

    fn send_rest(&mut self) {
        while let Some(signal) = self.0.pop() {
            signal.send();
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.send_rest();
    }
}
