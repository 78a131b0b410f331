//! Requests to the thread that writes the journal when no caller waits for it.

use parking_lot::{Condvar, Mutex};
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
    /// Starts the thread, which does `work`. It ends with [`stop`](Self::stop).
    pub(super) fn start(&self, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = thread::Builder::new().name("xfs journal".into()).spawn(work)?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Waits for a request beyond a checkpoint that is `done`, or for the end: `None`. Returns whether
    /// data of files should be written back.
    pub(super) fn wait(&self, done: u64, has_failed: impl Fn() -> bool) -> Option<bool> {
        let mut requests = self.requests.lock();
        loop {
            if requests.stop || has_failed() {
                return None;
            }
            if requests.checkpoint > done || requests.push || requests.write_back {
                requests.push = false;
                return Some(std::mem::take(&mut requests.write_back));
            }
            self.changed.wait(&mut requests);
        }
    }

    /// The newest checkpoint that should become durable.
    pub(super) fn checkpoint(&self) -> u64 {
        self.requests.lock().checkpoint
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
