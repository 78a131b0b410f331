//! The thread that writes the journal when no caller waits for it: for tickets, for checkpoints
//! that have grown large, and to move the tail.

use super::journal::Journal;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

/// The requests to the thread.
#[derive(Default)]
struct Requests {
    /// This checkpoint should become durable.
    checkpoint: u64,
    push: bool,
    /// Data of files should be written back.
    write_back: bool,
    stop: bool,
}

/// The thread, and the requests to it.
#[derive(Default)]
pub(super) struct Worker {
    requests: Mutex<Requests>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts the thread. It ends with [`stop`](Self::stop).
    pub(super) fn start(journal: &Arc<Journal>) -> std::io::Result<()> {
        let own = Arc::clone(journal);
        let work = move || {
            let _told = Told(&own);
            own.work();
        };
        let thread = thread::Builder::new().name("xfs journal".into()).spawn(work)?;
        *journal.worker.thread.lock() = Some(thread);
        Ok(())
    }

    /// Asks for a checkpoint to be made durable.
    pub(super) fn want(&self, checkpoint: u64) {
        let mut requests = self.requests.lock();
        if requests.checkpoint < checkpoint {
            requests.checkpoint = checkpoint;
            self.changed.notify_one();
        }
    }

    /// Asks for buffers to be written to their places.
    pub(super) fn want_push(&self) {
        let mut requests = self.requests.lock();
        if !requests.push {
            requests.push = true;
            self.changed.notify_one();
        }
    }

    /// Asks for data of files to be written back.
    pub(super) fn want_write_back(&self) {
        let mut requests = self.requests.lock();
        if !requests.write_back {
            requests.write_back = true;
            self.changed.notify_one();
        }
    }

    /// Ends the thread when its present work is done.
    pub(super) fn stop(&self) {
        self.requests.lock().stop = true;
        self.changed.notify_one();
        let thread = self.thread.lock().take();
        // The thread itself may hold the last reference to the volume, while it writes files back.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
        {
            // It does not panic; if it did, the panic was reported.
            drop(thread.join());
        }
    }
}

/// Answers all tickets that wait when the thread ends by a panic: a defect must not become a hang.
struct Told<'j>(&'j Journal);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.poison("the thread of its journal panicked, which is a defect of this program");
        }
    }
}

impl Journal {
    fn work(&self) {
        let mut done = 0;
        loop {
            let write_back = {
                let mut requests = self.worker.requests.lock();
                loop {
                    if requests.stop || self.poison.is_set() {
                        return;
                    }
                    if requests.checkpoint > done || requests.push || requests.write_back {
                        requests.push = false;
                        break std::mem::take(&mut requests.write_back);
                    }
                    self.worker.changed.wait(&mut requests);
                }
            };
            if write_back {
                self.write_back_files();
            }
            let checkpoint = self.worker.requests.lock().checkpoint;
            done = checkpoint;
            let mut writer = self.writer.lock();
            // The tickets that wait were told of the failure.
            if self.durable.load(Ordering::Acquire) < checkpoint
                && self.write_checkpoint(&mut writer).is_err()
            {
                return;
            }
            if self.push_in_background(&mut writer).is_err() {
                return;
            }
        }
    }
}
