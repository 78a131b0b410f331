//! Bios that a thread holds back: it submitted them, and they wait for neighbours. They leave
//! before the thread sleeps in this crate, so that it never waits for its own bios.

use std::cell::Cell;

thread_local! {
    static SEND: Cell<fn()> = const { Cell::new(nothing) };
}

fn nothing() {}

/// Sets how this thread sends the bios that it holds back, from now on.
pub(crate) fn send_by(send: fn()) {
    SEND.set(send);
}

/// Sends the bios that this thread holds back.
pub(crate) fn send() {
    SEND.get()();
}
