//! Writes that the thread of a connection does itself.
//!
//! Most take no more than a copy, and no other thread need be woken. A write to a file may wait for a
//! disk all the same, and what the client asks for meanwhile waits with it; so after one that did, the
//! threads of the device do those of the next moment.

use std::time::{Duration, Instant};

use undercroft_block::Plug;

use crate::protocol::{CommandFlags, Request};

/// A write of so many bytes takes about as long to be copied as to be received: it is left to the device, so
/// that the next one is received meanwhile.
pub(crate) const LONG: u64 = 32 << 10;
/// Writes under one plug that take longer have waited for a disk.
const SLOW: Duration = Duration::from_millis(5);
/// Others write for so many times as long.
const REST: u32 = 50;

/// What a connection knows of the writes that it does itself.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    /// Until then the device does all writes.
    rests_until: Option<Instant>,
    /// Whether some are under the plug.
    plugged: bool,
}

impl OwnWrites {
    /// Whether the thread may write what `request` says. What has to be durable takes a disk its time.
    pub(crate) fn may_be(&self, request: &Request) -> bool {
        !request.flags.contains(CommandFlags::FUA)
            && self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// One of them is put under the plug.
    pub(crate) fn plug(&mut self) {
        self.plugged = true;
    }

    /// Submits what is under `plug`.
    pub(crate) fn flush(&mut self, plug: &Plug) {
        if std::mem::take(&mut self.plugged) {
            self.measure(|| plug.flush());
        } else {
            plug.flush();
        }
    }

    /// Does some by `write`, and sees how long that takes.
    pub(crate) fn measure<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = write();
        self.took(start.elapsed());
        result
    }

    fn took(&mut self, time: Duration) {
        self.rests_until = (time >= SLOW).then(|| Instant::now() + REST * time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Command;

    fn write(flags: CommandFlags) -> Request {
        Request { command: Command::Write, flags, cookie: 0, offset: 0, length: 4096 }
    }

    #[test]
    fn others_write_after_one_that_waited_and_what_has_to_be_durable() {
        let mut writes = OwnWrites::default();
        let plain = write(CommandFlags::empty());
        assert!(writes.may_be(&plain) && !writes.may_be(&write(CommandFlags::FUA)));
        writes.took(SLOW / 2);
        assert!(writes.may_be(&plain));
        writes.took(Duration::from_secs(3600));
        assert!(!writes.may_be(&plain));
        writes.took(SLOW / 2);
        assert!(writes.may_be(&plain));
    }
}
