//! Waiting for one bio.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::completion::Completion;
use crate::threads::{Event, own_queues, plugged, role};

/// The receiving end of one completion, from [`Bio::waited`](crate::Bio::waited).
#[derive(Debug)]
#[must_use = "an ignored waiter ignores the error of its bio"]
pub struct Waiter {
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<SlotState>,
    arrived: Event,
}

#[derive(Debug, Default)]
struct SlotState {
    has_arrived: bool,
    /// Until it is taken.
    completion: Option<Completion>,
    /// Tasks to be woken.
    wakers: Vec<Waker>,
}

/// A callback that delivers a completion, and the waiter that it is delivered to.
pub(crate) fn waiter() -> (impl FnOnce(Completion) + Send + 'static, Waiter) {
    let slot = Arc::new(Slot::default());
    let deliver = {
        let slot = Arc::clone(&slot);
        move |completion| {
            let wakers = {
                let mut state = slot.state.lock();
                (state.has_arrived, state.completion) = (true, Some(completion));
                std::mem::take(&mut state.wakers)
            };
            slot.arrived.notify();
            wakers.into_iter().for_each(Waker::wake);
        }
    };
    (deliver, Waiter { slot })
}

impl Waiter {
    /// Whether the bio has completed: [`wait`](Self::wait) would not sleep.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.slot.state.lock().has_arrived
    }

    /// Ready when the bio has completed: [`wait`](Self::wait) would not sleep. Until then the task
    /// is woken when it has; there may be several. As when a [future](crate::CompletionFuture) is
    /// polled, the plugs of the thread are flushed.
    pub fn poll_complete(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_complete() {
            return Poll::Ready(());
        }
        plugged::send();
        own_queues::poll();
        let mut state = self.slot.state.lock();
        if state.has_arrived {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Sleeps until the bio has completed; flushes the plugs of this thread first.
    ///
    /// Must not be called in a completion callback.
    #[must_use]
    pub fn wait(self) -> Completion {
        self.take()
    }

    /// Sleeps until the bio has completed, and takes the completion, which is there once.
    pub(super) fn take(&self) -> Completion {
        debug_assert!(!role::is_in_callback(), "a completion callback must not wait");
        self.slot.arrived.wait_unplugged(|| self.slot.state.lock().completion.take())
    }

    /// Sleeps until the bio has completed; flushes the plugs of this thread first.
    pub(super) fn wait_complete(&self) {
        debug_assert!(!role::is_in_callback(), "a completion callback must not wait");
        self.slot.arrived.wait_unplugged(|| self.is_complete().then_some(()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use crate::bio::Bio;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_task_that_asked_is_woken_once() {
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let (bio, waiter) = Bio::flush().waited();
        for count in counts.iter().chain(&counts) {
            let waker = Waker::from(Arc::clone(count));
            assert_eq!(waiter.poll_complete(&mut Context::from_waker(&waker)), Poll::Pending);
        }
        bio.succeed();
        assert!(counts.iter().all(|count| count.0.load(Ordering::Relaxed) == 1));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(waiter.poll_complete(&mut context), Poll::Ready(()));
        assert!(waiter.wait().result.is_ok());
    }
}
