//! The shared state of a leaf and its watchdog.

use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::request::Request;

/// Work for the watchdog of a leaf, and its thread.
#[derive(Default)]
pub(super) struct WatchdogState {
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Dropped by the driver, to be answered.
    pub(super) dropped: Vec<Request>,
    /// Set while there is a thread.
    pub(super) thread: Option<JoinHandle<()>>,
    /// Whether the thread is to end.
    pub(super) stops: bool,
}
