//! Short writes that are received in the mapped pages of a file in memory, one call for each and the
//! header of the next: one copy less than by memory, no lock of the file, and no search for its pages.

use undercroft_block::{SpliceTarget, splice_at};

use super::connection::Connection;
use super::own_writes::LONG;
use super::splice_way::PageReceiver;
use crate::protocol::{CommandFlags, Request};

impl Connection<'_> {
    /// Receives the payload of the short write `request`, which was checked, and answers it, if it has come
    /// and nothing of it is in memory; whether it did. Sees to it that the next ones come so.
    ///
    /// Alone they come with their headers in one call, and one more costs what a copy does.
    pub(super) fn take_placed(&mut self, request: &Request, charge: usize) -> bool {
        let may_be = request.length < LONG
            && !request.flags.contains(CommandFlags::FUA)
            && self.own_writes.is_crowded()
            && !self.own_writes.come_alone()
            && self.executor.is_placed(request);
        if !may_be {
            return false;
        }
        let header = self.executor.dialect.request_length();
        self.state.ahead = Some(header);
        // Short.
        let length = request.length as usize;
        if !self.input.bytes().is_empty() || !self.has_arrived(length) {
            return false;
        }
        let (cover, device) = (self.executor.cover(request), &*self.executor.export.device);
        let behind = &mut self.input.room()[..header];
        let mut receiver = PageReceiver::new(self.stream.socket(), behind);
        let mut splice =
            |target: SpliceTarget<'_>, offset, most| receiver.receive(target, offset, most);
        let Some(result) = splice_at(device, cover.sector(), cover.length(), &mut splice) else {
            return false;
        };
        let followed = receiver.followed;
        self.input.fill(followed);
        self.state.arrived = self.state.arrived.saturating_sub(length + followed);
        self.own_writes.learn(self.state.arrived == 0 && self.outbox.load.requests() == 0);
        let asked = self.executor.asked(request);
        self.outbox.push(|answers| asked.ended(answers, &result, charge));
        true
    }

    /// Whether `length` bytes are in the socket.
    fn has_arrived(&mut self, length: usize) -> bool {
        if self.state.arrived < length {
            // A failure shows when it is read.
            self.state.arrived = self.arrived().unwrap_or(0);
        }
        self.state.arrived >= length
    }
}
