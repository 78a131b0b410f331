//! The writes that the thread of a connection does itself.

use std::time::Instant;

use undercroft_block::Plug;

use super::cover::OWN;
use super::patience::Patience;
use crate::crowd::Member;
use crate::protocol::{CommandFlags, Request};

/// A write of so many bytes is received in its place, not with what came before it, and takes about as
/// long to be copied as to be received.
pub(super) const LONG: u64 = 32 << 10;
/// Writes that came alone after which the next one is taken to do so: while a long one is received the
/// client may have no room for the next.
const ALONE: u32 = 4;

/// How a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As the device does it.
    Queue,
    /// By the thread of the connection.
    Own,
    /// By that thread, in [parts](super::long_write) if it can be.
    Parts,
    /// By that thread, [spliced](super::spliced_write).
    Splice,
}

/// Which writes a connection does itself.
pub(super) struct OwnWrites<'c> {
    member: Member<'c>,
    patience: Patience,
    /// Writes, one after the other, beside which the client had no other request.
    alone: u32,
    /// Whether some are under the plug.
    plugged: bool,
}

impl<'c> OwnWrites<'c> {
    pub(super) fn new(member: Member<'c>) -> Self {
        Self { member, patience: Patience::default(), alone: 0, plugged: false }
    }

    /// The way of the write `request`, whose payload comes next and is spliced if it `may_splice`. What
    /// has to be durable takes a disk its time. While a long one is copied the next should be received,
    /// if there is a processor for that; and if there is none for the client, parts save no time.
    pub(super) fn way(&mut self, request: &Request, may_splice: bool) -> Way {
        let is_long = request.length >= LONG;
        let is_crowded = is_long && self.member.is_enough();
        let is_due = !is_long || self.come_alone() || is_crowded;
        let is_own = (may_splice || is_due && request.length <= OWN)
            && !request.flags.contains(CommandFlags::FUA)
            && self.patience.suffices();
        match is_own {
            false => Way::Queue,
            true if may_splice => Way::Splice,
            true if is_long && !is_crowded => Way::Parts,
            true => Way::Own,
        }
    }

    /// Whether there are as many connections as processors.
    pub(super) fn is_crowded(&self) -> bool {
        self.member.is_enough()
    }

    /// Whether the client had no other request beside the last writes.
    pub(super) fn come_alone(&self) -> bool {
        self.alone >= ALONE
    }

    /// Learns that a write has come; `is_only` if the client has no other request.
    pub(super) fn learn(&mut self, is_only: bool) {
        self.alone = if is_only { self.alone.saturating_add(1) } else { 0 };
    }

    /// A write is plugged next; `own` if it is one of them.
    pub(super) fn plug(&mut self, own: bool) {
        self.plugged |= own;
    }

    /// Submits what is under `plug`.
    pub(super) fn flush(&mut self, plug: &Plug) {
        if std::mem::take(&mut self.plugged) {
            self.measure(|| plug.flush());
        } else {
            plug.flush();
        }
    }

    /// Does some by `write`, and learns how long that takes.
    pub(super) fn measure<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = write();
        self.patience.learn(start.elapsed());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::Crowd;
    use crate::protocol::Command;

    fn write(length: u64, flags: CommandFlags) -> Request {
        Request { command: Command::Write, flags, cookie: 0, offset: 0, length }
    }

    #[test]
    fn long_writes_are_done_beside_others_only_by_many_connections() {
        let none = CommandFlags::empty();
        let crowd = Crowd::of(2);
        let mut writes = OwnWrites::new(crowd.join());
        assert_eq!(writes.way(&write(4096, none), false), Way::Own);
        assert_eq!(writes.way(&write(4096, CommandFlags::FUA), false), Way::Queue);
        assert_eq!(writes.way(&write(2 * OWN, none), true), Way::Splice);
        let mut after = |is_only| {
            writes.learn(is_only);
            writes.way(&write(LONG, none), false)
        };
        assert_eq!([false; 2].map(&mut after), [Way::Queue; 2]);
        assert_eq!([true; ALONE as usize - 1].map(&mut after), [Way::Queue; ALONE as usize - 1]);
        assert_eq!([true; 2].map(&mut after), [Way::Parts; 2]);
        assert_eq!(after(false), Way::Queue);
        let _other = crowd.join();
        assert_eq!(after(false), Way::Own);
    }
}
