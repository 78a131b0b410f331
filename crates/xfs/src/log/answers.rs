//! The thread that tells of answers: callbacks and wakers are code of others, and run where no lock
//! of the volume is held and no thread waits for them.

use super::answer::{Answer, Receiver};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::{self, ThreadId};

/// The work for the thread.
enum Job {
    Tell(Vec<Receiver>, Answer),
    /// Say that everything before was done.
    Report(SyncSender<()>),
}

/// The way to the thread, which is started when there is a receiver to be told, and ends when this
/// is dropped.
#[derive(Default)]
pub(super) struct Answers {
    thread: OnceLock<Option<(Sender<Job>, ThreadId)>>,
}

impl Answers {
    /// Has these told of an answer. The caller holds no lock: without a thread it tells them itself.
    pub(super) fn deliver(&self, receivers: Vec<Receiver>, answer: &Answer) {
        if receivers.is_empty() {
            return;
        }
        match self.thread.get_or_init(start) {
            // The thread takes jobs as long as this is there.
            Some((jobs, _)) => drop(jobs.send(Job::Tell(receivers, answer.clone()))),
            None => receivers.into_iter().for_each(|receiver| receiver.tell(answer)),
        }
    }

    /// Waits until all receivers were told whose answers came before, unless this is called by one
    /// of them.
    pub(super) fn drain(&self) {
        let Some(Some((jobs, thread))) = self.thread.get() else { return };
        if *thread == thread::current().id() {
            return;
        }
        let (done, all_done) = mpsc::sync_channel(1);
        if jobs.send(Job::Report(done)).is_ok() {
            // An error says that the thread is gone, and with it the receiver.
            let _ = all_done.recv();
        }
    }
}

/// Starts the thread; `None` if the operating system has none left.
fn start() -> Option<(Sender<Job>, ThreadId)> {
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
    let thread = thread::Builder::new().name("xfs answers".into()).spawn(work).ok()?;
    Some((sender, thread.thread().id()))
}
