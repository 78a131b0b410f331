//! The receivers of bios, as their submitters choose them.

use super::batch::Batch;
use super::body::{Bio, Receiver};
use super::completion::Completion;
use super::completion_queue::CompletionQueue;
use super::future::{CompletionFuture, future};
use super::waiter::{Waiter, waiter};

impl Bio {
    /// Calls `receiver` with the completion, in the thread that completes the bio.
    ///
    /// The callback must not block (it may submit bios): the thread may be the one that has to do
    /// the work waited for. Callbacks do not nest: one that is due while another runs in the same
    /// thread runs after it.
    pub fn on_complete(self, receiver: impl FnOnce(Completion) + Send + 'static) -> Self {
        self.tell(Receiver::Callback(Box::new(receiver)))
    }

    /// Delivers the completion to `queue`, under the name `cookie`.
    pub fn in_queue(self, queue: &CompletionQueue, cookie: u64) -> Self {
        self.tell(Receiver::Queue { number: queue.number(), cookie })
    }

    /// A future of the completion of this bio.
    pub fn future(self) -> (Self, CompletionFuture) {
        let (deliver, future) = future();
        (self.on_complete(deliver), future)
    }

    /// Counts this bio in `batch`, which keeps its error. The buffer of a read is dropped.
    pub fn in_batch(self, batch: &Batch) -> Self {
        self.tell(Receiver::Batch(batch.ticket()))
    }

    /// A handle to wait for the completion of this bio.
    pub fn waited(self) -> (Self, Waiter) {
        let (deliver, waiter) = waiter();
        (self.on_complete(deliver), waiter)
    }
}
