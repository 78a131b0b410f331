//! The threads that tell of answers: callbacks and wakers are code of others, and run where no lock
//! of the volume is held and no thread waits for them. Wakers have a thread of their own: a
//! callback may await a ticket itself.

use super::answer::{Answer, Receiver};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::{self, ThreadId};

/// The work for a thread.
enum Job {
    Tell(Vec<Receiver>, Answer),
    /// Say that everything before was done.
    Report(SyncSender<()>),
}

/// The ways to the receivers of answers.
pub(super) struct Answers {
    wakers: Teller,
    callbacks: Teller,
}

impl Default for Answers {
    fn default() -> Self {
        Self { wakers: Teller::new("xfs wakers"), callbacks: Teller::new("xfs answers") }
    }
}

impl Answers {
    /// Has these told of an answer. The caller holds no lock: without a thread it tells them itself.
    pub(super) fn deliver(&self, receivers: Vec<Receiver>, answer: &Answer) {
        let is_waker = |receiver: &Receiver| matches!(receiver, Receiver::Task(_));
        let (wakers, callbacks) = receivers.into_iter().partition(is_waker);
        self.wakers.deliver(wakers, answer);
        self.callbacks.deliver(callbacks, answer);
    }

    /// Waits until all receivers were told whose answers came before, unless this is called by one
    /// of them.
    pub(super) fn drain(&self) {
        let both = [&self.wakers, &self.callbacks];
        if !both.iter().any(|teller| teller.is_this_thread()) {
            both.iter().for_each(|teller| teller.drain());
        }
    }
}

/// The way to a thread, which is started when there is a receiver to be told, and ends when this is
/// dropped.
struct Teller {
    name: &'static str,
    thread: OnceLock<Option<(Sender<Job>, ThreadId)>>,
}

impl Teller {
    const fn new(name: &'static str) -> Self {
        Self { name, thread: OnceLock::new() }
    }

    fn deliver(&self, receivers: Vec<Receiver>, answer: &Answer) {
        if receivers.is_empty() {
            return;
        }
        match self.thread.get_or_init(|| start(self.name)) {
            // The thread takes jobs as long as this is there.
            Some((jobs, _)) => drop(jobs.send(Job::Tell(receivers, answer.clone()))),
            None => receivers.into_iter().for_each(|receiver| receiver.tell(answer)),
        }
    }

    fn is_this_thread(&self) -> bool {
        let own = thread::current().id();
        self.thread.get().is_some_and(|thread| thread.as_ref().is_some_and(|(_, id)| *id == own))
    }

    fn drain(&self) {
        let Some(Some((jobs, _))) = self.thread.get() else { return };
        let (done, all_done) = mpsc::sync_channel(1);
        if jobs.send(Job::Report(done)).is_ok() {
            // An error says that the thread is gone, and with it the receiver.
            let _ = all_done.recv();
        }
    }
}

/// Starts a thread; `None` if the operating system has none left.
fn start(name: &str) -> Option<(Sender<Job>, ThreadId)> {
    let (sender, jobs) = mpsc::channel();
    let work = move || {
        for job in jobs {
            match job {
                Job::Tell(receivers, answer) => {
                    for receiver in receivers {
                        // A panic was reported by the hook; others are still to be told.
                        let _ = catch_unwind(AssertUnwindSafe(|| receiver.tell(&answer)));
                    }
                }
                Job::Report(done) => drop(done.send(())),
            }
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(work).ok()?;
    Some((sender, thread.thread().id()))
}
