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
    answer.clone().map_err(|reason| Error::ReadOnly(reason.to_string()))
}

/// The promise that everything committed before it was drawn becomes durable: a future.
///
/// Dropping it cancels nothing but the report. It can also be waited for by a thread
/// ([`Volume::sync`](crate::Volume::sync)) or answered by a [callback](Self::on_complete).
#[must_use = "the answer says whether the changes are durable"]
pub struct SyncTicket {
    shared: Arc<Shared>,
}

impl SyncTicket {
    /// Calls `callback` with the answer, at once if it is there already, else in the thread that
    /// writes the journal: it must not wait for the volume.
    pub fn on_complete(self, callback: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let mut state = self.shared.state.lock();
        if let State::Done(answer) = &*state {
            let answer = to_result(answer);
            drop(state);
            return callback(answer);
        }
        *state = State::Waiting(Receiver::Callback(Box::new(callback)));
    }

    /// Sleeps until the answer is there.
    ///
    /// # Errors
    /// The journal could not be written: nothing is known about what the ticket stands for.
    pub fn wait(self) -> Result<(), Error> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.on_complete(move |result| drop(sender.send(result)));
        let gone = || Err(Error::ReadOnly("the volume was dropped".into()));
        receiver.recv().unwrap_or_else(|_| gone())
    }

    /// The answer, if it is there.
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
