//! Threads of the client.

use std::cell::Cell;
use std::io;
use std::thread::{Builder, JoinHandle};

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread of the client.
pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        IS_OWN.set(true);
        run();
    })
}

/// Whether the calling thread is one of a client. It answers requests, and must wait neither for
/// others that do nor for room in a socket.
pub(super) fn is_own() -> bool {
    IS_OWN.get()
}
