//! The thread that makes durable what no program asks for, and lets go of idle files.

use crate::server::Server;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Stop {
    is_asked: Mutex<bool>,
    asked: Condvar,
}

impl Keeper {
    pub(crate) fn start(server: &Arc<Server>, interval: Duration) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let (asked, server) = (Arc::clone(&stop), Arc::clone(server));
        let keep = move || {
            while !asked.waits(interval) {
                server.let_go();
                if server.fs.is_writable() {
                    server.checkpoint();
                }
            }
        };
        let thread = Builder::new().name("keeper".into()).spawn(keep)?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn stop(self) {
        *self.stop.is_asked.lock() = true;
        self.stop.asked.notify_all();
        // A panic has been printed.
        let _ = self.thread.join();
    }
}

impl Stop {
    /// Waits for the time, or until it is asked for: then it returns `true`.
    fn waits(&self, time: Duration) -> bool {
        let mut is_asked = self.is_asked.lock();
        if !*is_asked {
            self.asked.wait_for(&mut is_asked, time);
        }
        *is_asked
    }
}
