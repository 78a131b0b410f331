//! Tickets for durability (docs/decisions/journal.md#durability-by-ticket): one write of the journal
//! completes all that wait for it, and no thread sleeps for any of them.

use super::answer::{Answer, Receiver, Refusal, to_result};
use super::answers::Answers;
use crate::error::Error;
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

enum State {
    Waiting(Option<Receiver>),
    Done(Answer),
}

/// The shared state of a ticket and the journal.
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
}

impl Shared {
    /// Answers, unless that happened before. Returns the receiver to be told.
    fn answer(&self, answer: &Answer) -> Option<Receiver> {
        let mut state = self.state.lock();
        let State::Waiting(receiver) = &mut *state else { return None };
        let receiver = receiver.take();
        *state = State::Done(answer.clone());
        self.answered.notify_all();
        receiver
    }
}

/// A ticket for durability: an fsync without a thread that sleeps for it.
///
/// It stands for the changes it was drawn for: one file
/// ([`OpenFile::fsync`](crate::OpenFile::fsync)), or everything that was committed before
/// ([`Volume::force`](crate::Volume::force)). It is answered exactly once, with `Ok` when all of
/// that is on stable storage, or with the reason why it may never be. There are four ways to hear
/// of it:
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
/// An error is final. Most often the volume has become read-only, and every other ticket that waits
/// gets the same answer; [`Error::NotWritten`] speaks of one file only. Changes that were answered
/// with `Ok` before stay durable.
#[must_use = "the answer says whether the changes are durable"]
pub struct SyncTicket {
    shared: Arc<Shared>,
}

impl SyncTicket {
    /// A ticket whose answer is that the volume is read-only.
    pub(crate) fn refused(reason: &str) -> Self {
        let answer = Err(Refusal::ReadOnly(reason.into()));
        Self { shared: new_ticket(Some(answer)).0 }
    }

    /// Calls `callback` with the answer, once: in this call if the answer is there already, else in
    /// a thread of the volume that does only that. No lock of the volume is held: the callback may
    /// use the volume, draw tickets, and wait for them or await them. The next callback waits until
    /// it returns, and so does the closing of the volume; tasks that await tickets do not. A thread
    /// that drops the volume may find callbacks still to come: the last reference to the volume may
    /// be that of a thread of its own.
    pub fn on_complete(self, callback: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let mut state = self.shared.state.lock();
        if let State::Done(answer) = &*state {
            let answer = to_result(answer);
            drop(state);
            return callback(answer);
        }
        *state = State::Waiting(Some(Receiver::Callback(Box::new(callback))));
    }

    /// Sleeps until the answer is there.
    ///
    /// # Errors
    /// A write or a flush failed, or the volume was dropped or closed before: the changes of the
    /// ticket may be durable or not.
    pub fn wait(self) -> Result<(), Error> {
        // The journal may wait for bios that this thread holds back.
        undercroft_block::flush_plugs();
        let mut state = self.shared.state.lock();
        loop {
            if let State::Done(answer) = &*state {
                return to_result(answer);
            }
            self.shared.answered.wait(&mut state);
        }
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
        *state = State::Waiting(Some(Receiver::Task(context.waker().clone())));
        Poll::Pending
    }
}

impl fmt::Debug for SyncTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncTicket").field("result", &self.try_result()).finish()
    }
}

/// The tickets that wait.
#[derive(Default)]
pub(super) struct Tickets {
    waiting: Mutex<Waiting>,
    pub(super) answers: Answers,
}

#[derive(Default)]
struct Waiting {
    /// For a checkpoint to be durable.
    by_checkpoint: BTreeMap<u64, Vec<Arc<Shared>>>,
    /// For data that is yet to be written back, by numbers of their own.
    unsequenced: FxHashMap<u64, Arc<Shared>>,
    /// The next of these numbers.
    next: u64,
}

/// A ticket without a checkpoint yet, as its data is still to be written back. Dropped without one,
/// it is answered with an error.
pub(crate) struct UnsequencedTicket {
    tickets: Arc<Tickets>,
    number: u64,
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
        let (shared, waits) = new_ticket(outcome());
        if waits {
            waiting.by_checkpoint.entry(sequence).or_default().push(Arc::clone(&shared));
        }
        SyncTicket { shared }
    }

    /// A ticket that gets its checkpoint later. `outcome` is as for [`draw`](Self::draw).
    pub(super) fn draw_unsequenced(
        self: &Arc<Self>,
        outcome: impl FnOnce() -> Option<Answer>,
    ) -> (SyncTicket, UnsequencedTicket) {
        let mut waiting = self.waiting.lock();
        let (shared, waits) = new_ticket(outcome());
        let number = waiting.next;
        waiting.next += 1;
        if waits {
            waiting.unsequenced.insert(number, Arc::clone(&shared));
        }
        (SyncTicket { shared }, UnsequencedTicket { tickets: Arc::clone(self), number })
    }

    /// The data of these tickets was committed: they now wait for the checkpoint
    /// `sequence`. `outcome` is as for [`draw`](Self::draw).
    pub(super) fn set_checkpoint(
        &self,
        unsequenced: &[UnsequencedTicket],
        sequence: u64,
        outcome: impl FnOnce() -> Option<Answer>,
    ) {
        let mut waiting = self.waiting.lock();
        let numbers = unsequenced.iter().map(|ticket| ticket.number);
        let kept: Vec<_> =
            numbers.filter_map(|number| waiting.unsequenced.remove(&number)).collect();
        match outcome() {
            None => waiting.by_checkpoint.entry(sequence).or_default().extend(kept),
            Some(answer) => {
                drop(waiting);
                self.answer(kept, &answer);
            }
        }
    }

    /// Answers all tickets up to `sequence`.
    pub(super) fn complete(&self, sequence: u64, answer: &Answer) {
        let done = {
            let by_checkpoint = &mut self.waiting.lock().by_checkpoint;
            let later = match sequence.checked_add(1) {
                Some(next) => by_checkpoint.split_off(&next),
                None => BTreeMap::new(),
            };
            std::mem::replace(by_checkpoint, later)
        };
        self.answer(done.into_values().flatten(), answer);
    }

    /// Answers all tickets: nothing will become durable any more.
    pub(super) fn refuse_all(&self, reason: &Refusal) {
        let waiting = std::mem::take(&mut self.waiting.lock().unsequenced);
        let answer = Err(reason.clone());
        self.answer(waiting.into_values(), &answer);
        self.complete(u64::MAX, &answer);
    }

    /// Answers without a lock; calls are made by the thread for that.
    fn answer(&self, tickets: impl IntoIterator<Item = Arc<Shared>>, answer: &Answer) {
        let receivers = tickets.into_iter().filter_map(|ticket| ticket.answer(answer));
        self.answers.deliver(receivers.collect(), answer);
    }
}

/// A ticket, and whether it has no answer yet.
fn new_ticket(answer: Option<Answer>) -> (Arc<Shared>, bool) {
    let waits = answer.is_none();
    let state = answer.map_or(State::Waiting(None), State::Done);
    (Arc::new(Shared { state: Mutex::new(state), answered: Condvar::new() }), waits)
}

impl UnsequencedTicket {
    /// Answers the ticket with an error.
    pub(crate) fn refuse(self, reason: Refusal) {
        self.answer_with(&Err(reason));
    }

    fn answer_with(&self, answer: &Answer) {
        let ticket = self.tickets.waiting.lock().unsequenced.remove(&self.number);
        self.tickets.answer(ticket, answer);
    }
}

impl Drop for UnsequencedTicket {
    fn drop(&mut self) {
        // Kept and refused ones are not found.
        self.answer_with(&Err(Refusal::Poisoned(
            "it was dropped before the data was written".into(),
        )));
    }
}
