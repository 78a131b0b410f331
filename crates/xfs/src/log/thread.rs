//! What the thread of a journal does: it writes the journal when no caller waits for it, for tickets,
//! for checkpoints that have grown large, and to move the tail.

use super::journal::Journal;
use std::sync::atomic::Ordering;
use std::thread;

/// Answers all tickets that wait when the thread ends by a panic: a defect must not become a hang.
struct PoisonOnPanic<'j>(&'j Journal);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.poison("the thread of its journal panicked, which is a defect of this program");
        }
    }
}

impl Journal {
    /// The life of the thread.
    pub(super) fn work(&self) {
        let _guard = PoisonOnPanic(self);
        let mut done = 0;
        while let Some(write_back) = self.worker.wait(done, || self.poison.is_set()) {
            if write_back {
                self.write_back_files();
            }
            let checkpoint = self.worker.checkpoint();
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
