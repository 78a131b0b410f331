//! Tickets for durability (design, decision 9): one write of the journal completes all that wait
//! for it, and no thread sleeps for any of them.

use crate::error::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The answer to a ticket: why the journal failed, if it did.
pub(super) type Answer = Result<(), Arc<str>>;

enum Receiver {
    /// Nobody asked yet.
    Nobody,
    Task(Waker),
    Callback(Box<dyn FnOnce(Result<(), Error>) + Send>),
}

enum State {
    Waiting(Receiver),
    Done(Answer),
}

/// What a ticket and the journal share.
struct Shared {
    state: Mutex<State>,
}

impl Shared {
    fn complete(&self, answer: &Answer) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Done(answer.clone()));
        match before {
            State::Waiting(Receiver::Task(waker)) => waker.wake(),
            State::Waiting(Receiver::Callback(callback)) => callback(to_result(answer)),
            State::Waiting(Receiver::Nobody) | State::Done(_) => {}
        }
    }
}

fn to_result(answer: &Answer) -> Result<(), Error> {
    answer.clone().map_err(|reason| Error::Poisoned(reason.to_string()))
}

/// A promise of durability: an fsync that nobody needs to sleep for.
///
/// It stands for what was drawn for: one file ([`Files::fsync`](crate::Files::fsync)), or everything
/// that was committed before ([`Volume::force`](crate::Volume::force)). It is answered exactly once,
/// with `Ok` when all of that is on stable storage, or with the reason why it may never be. There
/// are four ways to hear of it:
///
/// - it is a [`Future`], of no particular runtime;
/// - [`on_complete`](Self::on_complete) calls back;
/// - [`wait`](Self::wait) sleeps;
/// - [`try_result`](Self::try_result) looks.
///
/// Work is under way from the moment the ticket was drawn: it needs neither to be polled nor to be
/// waited for, and dropping it cancels nothing but the report. A ticket costs some hundred bytes and
/// no thread, and tickets drawn together are answered by one write of the journal and one flush. So
/// draw as many as there are files, then wait for all.
///
/// An error is final: the volume has become read-only, and every other ticket that waits gets the
/// same answer. What was answered with `Ok` before stays durable.
#[must_use = "the answer says whether the changes are durable"]
pub struct SyncTicket {
    shared: Arc<Shared>,
}

impl SyncTicket {
    /// Calls `callback` with the answer, once: in this call if the answer is there already, else in
    /// the thread that makes things durable. That thread does nothing else meanwhile: the callback
    /// should be short (count, send, wake), may draw further tickets, and must not wait for the
    /// volume.
    pub fn on_complete(self, callback: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let mut state = self.shared.state.lock();
        if let State::Done(answer) = &*state {
            let answer = to_result(answer);
            drop(state);
            return callback(answer);
        }
        *state = State::Waiting(Receiver::Callback(Box::new(callback)));
    }

    /// Sleeps until the answer is there. Not for callbacks of other tickets: nobody would be left to
    /// answer this one.
    ///
    /// # Errors
    /// A write or a flush failed, or the volume was dropped or closed before: nothing is known about
    /// what the ticket stands for.
    pub fn wait(self) -> Result<(), Error> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.on_complete(move |result| drop(sender.send(result)));
        let gone = || Err(Error::Poisoned("the volume was dropped".into()));
        receiver.recv().unwrap_or_else(|_| gone())
    }

    /// The answer, if it is there; `None` while it is under way.
    #[must_use]
    pub fn try_result(&self) -> Option<Result<(), Error>> {
        match &*self.shared.state.lock() {
            State::Done(answer) => Some(to_result(answer)),
            State::Waiting(_) => None,
        }
    }
}

impl Future for SyncTicket {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.state.lock();
        if let State::Done(answer) = &*state {
            return Poll::Ready(to_result(answer));
        }
        *state = State::Waiting(Receiver::Task(context.waker().clone()));
        Poll::Pending
    }
}

impl fmt::Debug for SyncTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncTicket").field("result", &self.try_result()).finish()
    }
}

/// The tickets that wait, by checkpoint.
#[derive(Default)]
pub(super) struct Tickets {
    waiting: Mutex<BTreeMap<u64, Vec<Arc<Shared>>>>,
}

impl Tickets {
    /// A ticket for the checkpoint `sequence`. `outcome` says whether that one is durable, or will
    /// never be; it is asked under the lock, so that no answer is missed.
    pub(super) fn draw(
        &self,
        sequence: u64,
        outcome: impl FnOnce() -> Option<Answer>,
    ) -> SyncTicket {
        let mut waiting = self.waiting.lock();
        let state = match outcome() {
            None => State::Waiting(Receiver::Nobody),
            Some(answer) => State::Done(answer),
        };
        let waits = matches!(state, State::Waiting(_));
        let shared = Arc::new(Shared { state: Mutex::new(state) });
        if waits {
            waiting.entry(sequence).or_default().push(Arc::clone(&shared));
        }
        SyncTicket { shared }
    }

    /// Makes the first `count` tickets for the last checkpoint there can ever be ones for
    /// `sequence`. `outcome` is as for [`draw`](Self::draw).
    pub(super) fn move_promises(
        &self,
        count: usize,
        sequence: u64,
        outcome: impl FnOnce() -> Option<Answer>,
    ) {
        let mut waiting = self.waiting.lock();
        let Some(promises) = waiting.get_mut(&u64::MAX) else { return };
        let rest = promises.split_off(count.min(promises.len()));
        let moved = std::mem::replace(promises, rest);
        match outcome() {
            None => waiting.entry(sequence).or_default().extend(moved),
            Some(answer) => {
                drop(waiting);
                moved.into_iter().for_each(|ticket| ticket.complete(&answer));
            }
        }
    }

    /// Answers all promises: whoever would have kept them is gone.
    pub(super) fn break_promises(&self, answer: &Answer) {
        let promises = self.waiting.lock().remove(&u64::MAX);
        promises.into_iter().flatten().for_each(|ticket| ticket.complete(answer));
    }

    /// Answers all tickets up to `sequence`.
    pub(super) fn complete(&self, sequence: u64, answer: &Answer) {
        let done = {
            let mut waiting = self.waiting.lock();
            let later = match sequence.checked_add(1) {
                Some(next) => waiting.split_off(&next),
                None => BTreeMap::new(),
            };
            std::mem::replace(&mut *waiting, later)
        };
        // Without the lock: a callback may draw the next ticket.
        done.into_values().flatten().for_each(|ticket| ticket.complete(answer));
    }
}
