//! The writes that the thread of a connection does itself.

use std::time::Instant;

use undercroft_block::Plug;

use super::cover::OWN;
use super::crowd::Member;
use super::patience::Patience;
use crate::protocol::{CommandFlags, Request};

/// A write of so many bytes is received in its place, not with what came before it, and takes about as
/// long to be copied as to be received.
pub(super) const LONG: u64 = 32 << 10;
/// Writes that came alone after which the next one is taken to do so: while a long one is received the
/// client may have no room for the next.
const ALONE: u32 = 4;

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

    /// Whether the write `request`, which is plugged next, is one of them; `is_only` if the client
    /// has no other request. What has to be durable takes a disk its time. While a long one is copied
    /// the next should be received, if there is a processor for that.
    pub(super) fn takes(&mut self, request: &Request, is_only: bool) -> bool {
        self.alone = if is_only { self.alone.saturating_add(1) } else { 0 };
        let is_due = request.length < LONG || self.alone >= ALONE || self.member.is_enough();
        let takes = is_due
            && request.length <= OWN
            && !request.flags.contains(CommandFlags::FUA)
            && self.patience.suffices();
        self.plugged |= takes;
        takes
    }

    /// Submits what is under `plug`.
    pub(super) fn flush(&mut self, plug: &Plug) {
        let start = std::mem::take(&mut self.plugged).then(Instant::now);
        plug.flush();
        if let Some(start) = start {
            self.patience.learn(start.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Command;
    use crate::server::crowd::Crowd;

    fn write(length: u64, flags: CommandFlags) -> Request {
        Request { command: Command::Write, flags, cookie: 0, offset: 0, length }
    }

    #[test]
    fn long_writes_are_done_beside_others_only_by_many_connections() {
        let none = CommandFlags::empty();
        let crowd = Crowd::of(2);
        let mut writes = OwnWrites::new(crowd.join());
        assert!(writes.takes(&write(4096, none), false));
        assert!(!writes.takes(&write(4096, CommandFlags::FUA), false));
        assert!(!writes.takes(&write(LONG, none), false));
        let alone: Vec<_> = (0..=ALONE).map(|_| writes.takes(&write(LONG, none), true)).collect();
        assert_eq!(alone, [false, false, false, true, true]);
        assert!(!writes.takes(&write(LONG, none), false));
        let _other = crowd.join();
        assert!(writes.takes(&write(LONG, none), false));
    }
}
