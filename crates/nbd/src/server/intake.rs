//! From what has come on a connection to requests that are submitted.

use undercroft_block::Plug;

use super::connection::{Connection, Left};
use super::end::End;
use super::export::MAX_PAYLOAD;
use super::long_write::LongWrite;
use super::own_writes::{LONG, Way};
use super::payload::{Payload, Write};
use crate::protocol::{Command, CommandFlags, Request};

/// Requests under one plug; then answers are sent.
const BATCH: usize = 64;
/// Bytes of data after which no more requests come under it: their buffers are still in the caches of
/// the processor when they are sent.
const BATCH_BYTES: u64 = 512 << 10;
/// The payload of a request for block status: all contexts that a server may have.
const LONGEST_FILTER: u64 = 4096;
/// Bytes that are read at most where headers of long writes come.
const HEADERS: usize = 1 << 10;

impl Connection<'_> {
    /// Submits what has come, and has its answers wait until that is done.
    pub(super) fn take_requests(&mut self, plug: &Plug) -> Result<Left, End> {
        if self.state.ending.is_some() || self.outbox.is_clogged() {
            return Ok(Left::Nothing);
        }
        self.outbox.cork();
        (self.state.batch, self.state.arrived) = (0, 0);
        let mut left = Ok(Left::Maybe);
        for _ in 0..BATCH {
            left = self.take_request(plug);
            if !matches!(left, Ok(Left::Maybe)) || self.state.batch >= BATCH_BYTES {
                break;
            }
        }
        // Devices that answer at once do so now.
        self.own_writes.flush(plug);
        self.outbox.uncork();
        left
    }

    /// Takes one request from the input, if it is there as a whole.
    fn take_request(&mut self, plug: &Plug) -> Result<Left, End> {
        self.skip();
        if self.state.skip > 0 {
            return Ok(Left::Nothing);
        }
        if let Some(payload) = self.state.payload.take() {
            return Ok(self.take_payload(plug, payload));
        }
        if let Some(long) = self.state.spliced.take() {
            return self.take_spliced(plug, long);
        }
        let dialect = self.executor.dialect;
        let header = dialect.request_length();
        let bytes = self.input.bytes();
        if bytes.len() < header {
            return Ok(Left::Nothing);
        }
        let request = Request::decode(dialect, &bytes[..header])?;
        if request.command == Command::Disconnect {
            self.state.ending = Some(End::Client);
            return Ok(Left::Nothing);
        }
        let payload = request.payload(dialect);
        if payload > MAX_PAYLOAD.into() {
            return Err(End::Violation("a payload longer than the export permits"));
        }
        let checked = self.executor.check(&request);
        let is_filter = request.command == Command::BlockStatus
            && request.flags.contains(CommandFlags::PAYLOAD_LEN)
            && checked.is_ok()
            && payload <= LONGEST_FILTER;
        if is_filter && bytes.len() - header < payload as usize {
            return Ok(Left::Nothing);
        }
        let data = *checked.as_ref().unwrap_or(&0);
        let Some(charge) = self.outbox.load.take(data) else {
            self.state.hungry = Some(data);
            return Ok(Left::Nothing);
        };
        self.input.consume(header);
        self.state.batch = self.state.batch.saturating_add(data as u64);
        self.unread.add(if request.command == Command::Read { data } else { 0 });
        self.state.ahead = (payload >= LONG).then_some(HEADERS);
        match checked {
            Err(error) => {
                self.state.skip = payload;
                self.executor.refuse(&request, error, charge);
            }
            Ok(_) if request.command == Command::Write => self.begin_write(request, charge),
            Ok(_) if is_filter => {
                // At most what the input holds.
                let payload = payload as usize;
                self.executor.filtered_status(&request, &self.input.bytes()[..payload], charge);
                self.input.consume(payload);
            }
            Ok(_) if payload > 0 => {
                self.state.skip = payload;
                self.executor.refuse(&request, crate::protocol::WireError::Invalid, charge);
            }
            Ok(_) => self.executor.run(plug, &request, None, charge, false),
        }
        Ok(Left::Maybe)
    }

    /// Takes memory for the payload of a write, and what is there of it, if it is not spliced.
    fn begin_write(&mut self, request: Request, charge: usize) {
        if self.take_placed(&request, charge) {
            return;
        }
        let splice = self.executor.splice_way(&request);
        if splice.is_some() {
            // What is read with a header is in memory.
            self.state.ahead = Some(self.executor.dialect.request_length());
        }
        let way = self.own_writes.way(&request, splice.is_some() && self.input.bytes().is_empty());
        let long = match way {
            Way::Splice => splice.map(|way| self.executor.spliced_write(&request, charge, way)),
            Way::Parts => self.executor.long_write(&request, charge),
            Way::Queue | Way::Own => None,
        };
        let own = way != Way::Queue;
        // Checked: at most the longest payload.
        let length = request.length as usize;
        match long {
            Some(long) => self.receive_part(long),
            None => self.receive_payload(Write::Whole { request, charge, own }, length),
        }
    }

    fn receive_part(&mut self, long: LongWrite) {
        if long.is_spliced() {
            self.state.spliced = Some(long);
            return;
        }
        let length = long.part();
        self.receive_payload(Write::Long(long), length);
    }

    fn receive_payload(&mut self, write: Write, length: usize) {
        let buffer = self.executor.buffer(length);
        self.state.payload = Some(Payload::new(write, buffer, &mut self.input));
    }

    /// Submits what `payload` is of, if it has come.
    fn take_payload(&mut self, plug: &Plug, payload: Payload) -> Left {
        if !payload.is_here() {
            self.state.payload = Some(payload);
            return Left::Nothing;
        }
        let (write, data) = payload.into_parts();
        if write.is_last() {
            self.own_writes
                .learn(self.outbox.load.requests() == 0 && self.input.bytes().is_empty());
        }
        match write {
            Write::Whole { request, charge, own } => {
                self.own_writes.plug(own);
                self.executor.run(plug, &request, Some(data), charge, own);
            }
            Write::Long(mut long) => {
                self.own_writes.plug(true);
                long.submit(plug, data);
                if long.part() > 0 {
                    // While the next one comes.
                    self.own_writes.flush(plug);
                    self.receive_part(long);
                }
            }
        }
        Left::Maybe
    }

    fn skip(&mut self) {
        let here = (self.input.bytes().len() as u64).min(self.state.skip);
        // At most what the input holds.
        self.input.consume(here as usize);
        self.state.skip -= here;
    }
}
