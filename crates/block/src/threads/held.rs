//! What a thread holds back: bios that it submitted and that wait for neighbours. They leave before
//! the thread sleeps in this crate, so that it never waits for what it holds back itself.

use std::cell::Cell;

thread_local! {
    static SEND: Cell<fn()> = const { Cell::new(nothing) };
}

fn nothing() {}

/// Says how this thread sends what it holds back, from now on.
pub(crate) fn send_by(send: fn()) {
    SEND.set(send);
}

/// Sends what this thread holds back.
pub(crate) fn send() {
    SEND.get()();
}
