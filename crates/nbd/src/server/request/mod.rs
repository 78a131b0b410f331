//! From what has come on a connection to requests that are submitted.

pub(crate) mod aligned_range;
pub(crate) mod execute;
mod status;
mod unaligned;

use undercroft_block::Plug;

use super::connection::{Connection, End, Left};
use super::export::MAX_PAYLOAD;
use super::write::own::LONG;
use crate::protocol::{Command, CommandFlags, Request, WireError};

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
    pub(crate) fn take_requests(&mut self, plug: &Plug) -> Result<Left, End> {
        if self.state.ending.is_some() || self.outbox.is_clogged() {
            return Ok(Left::Nothing);
        }
        self.outbox.cork();
        self.state.batch = 0;
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
        if let Some(write) = self.state.spliced.take() {
            return self.take_spliced(plug, write);
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
        let Some(charge) = self.outbox.quota.take(data) else {
            self.state.hungry = Some(data);
            return Ok(Left::Nothing);
        };
        self.input.consume(header);
        self.state.batch = self.state.batch.saturating_add(data as u64);
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
                self.executor.refuse(&request, WireError::Invalid, charge);
            }
            Ok(_) => self.executor.run(plug, &request, None, charge, false),
        }
        Ok(Left::Maybe)
    }

    fn skip(&mut self) {
        let here = (self.input.bytes().len() as u64).min(self.state.skip);
        // At most what the input holds.
        self.input.consume(here as usize);
        self.state.skip -= here;
    }
}
