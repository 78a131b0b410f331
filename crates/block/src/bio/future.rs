//! A completion as a future.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::completion::Completion;
use crate::threads::{own_queues, plugged};

/// Resolves to the completion of a bio, in any executor. From [`Bio::future`](crate::Bio::future).
///
/// Dropping it abandons the answer; the bio itself goes on. When it is polled and not ready it
/// flushes the plugs of the thread, and it collects what ended in the queues that the thread has
/// claimed; an executor that parks a thread with a claim has to poll from time to time.
#[derive(Debug)]
#[must_use = "an ignored future ignores the error of its bio"]
pub struct CompletionFuture {
    slot: Arc<Mutex<Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    completion: Option<Completion>,
    waker: Option<Waker>,
}

/// A callback that delivers a completion, and the future that it is delivered to.
pub(crate) fn future() -> (impl FnOnce(Completion) + Send + 'static, CompletionFuture) {
    let slot = Arc::new(Mutex::<Slot>::default());
    let future = CompletionFuture { slot: Arc::clone(&slot) };
    let deliver = move |completion| {
        let mut slot = slot.lock();
        slot.completion = Some(completion);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    (deliver, future)
}

impl Future for CompletionFuture {
    type Output = Completion;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        if let Some(completion) = self.slot.lock().completion.take() {
            return Poll::Ready(completion);
        }
        plugged::send();
        own_queues::poll();
        let mut slot = self.slot.lock();
        match slot.completion.take() {
            Some(completion) => Poll::Ready(completion),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::bio::Bio;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_future_wakes_its_task_once_and_is_ready() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let (bio, mut future) = Bio::flush().future();
        for _ in 0..2 {
            assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        }
        bio.succeed();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let Poll::Ready(completion) = Pin::new(&mut future).poll(&mut context) else {
            panic!("not ready")
        };
        assert!(completion.result.is_ok());
    }

    #[test]
    fn a_dropped_future_leaves_the_bio_alone() {
        let (bio, future) = Bio::flush().future();
        drop(future);
        bio.succeed();
    }
}
