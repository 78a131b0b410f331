//! A connection after the handshake: reads requests, and sleeps when there is nothing to do.

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
use undercroft_block::Plug;

use super::end::End;
use super::execute::Executor;
use super::export::MAX_PAYLOAD;
use super::input::Input;
use super::long_write::LongWrite;
use super::outbox::Outbox;
use super::own_writes::{LONG, OwnWrites, Way};
use super::payload::{Payload, Write};
use super::poll;
use super::stream::{Stream, Waiting};
use crate::busy_poll::BusyPoll;
use crate::protocol::{Command, CommandFlags, Request};

/// Requests under one plug; then answers are sent.
const BATCH: usize = 64;
/// Bytes of data after which no more requests come under it: their buffers are still in the caches of
/// the processor when they are sent.
const BATCH_BYTES: u64 = 512 << 10;
/// How long it looks before it sleeps: as long as a client's thread takes to wake, to take an answer in
/// several calls and to ask again. With 20 us reads that come one after the other are missed in a
/// virtual machine.
const MOMENT: Duration = Duration::from_micros(50);
/// The room for headers where writes are long.
const HEADERS: usize = 1 << 10;
/// The payload of a request for block status: all contexts that a server may have.
const LONGEST_FILTER: u64 = 4096;

/// A connection in the transmission phase.
pub(super) struct Connection<'c> {
    pub(super) stream: Stream,
    pub(super) input: Input,
    pub(super) executor: Executor,
    pub(super) outbox: Arc<Outbox>,
    pub(super) stops: &'c AtomicBool,
    pub(super) idle: Option<Duration>,
    own_writes: OwnWrites<'c>,
    busy_poll: BusyPoll,
    state: State,
}

/// Where in the stream of requests the thread is.
#[derive(Default)]
struct State {
    /// What has not come of the payload of a write. No input is behind it.
    payload: Option<Payload>,
    /// Bytes of a payload that are not used.
    skip: u64,
    /// Whether the last request was a long write. The next one may be, too.
    long: bool,
    /// Bytes of data of the requests under the plug.
    batch: u64,
    /// The data of a request that waits for memory, in bytes.
    hungry: Option<usize>,
    /// Why nothing more is read.
    ending: Option<End>,
}

/// Whether requests may be in the input still.
#[derive(PartialEq)]
enum Left {
    Maybe,
    Nothing,
}

impl<'c> Connection<'c> {
    pub(super) fn new(
        (stream, input): (Stream, Input),
        executor: Executor,
        outbox: Arc<Outbox>,
        (stops, own_writes): (&'c AtomicBool, OwnWrites<'c>),
        idle: Option<Duration>,
    ) -> Self {
        let (busy_poll, state) = (BusyPoll::default(), State::default());
        Self { stream, input, executor, outbox, stops, idle, own_writes, busy_poll, state }
    }

    /// Serves until the connection ends. Requests of the device may be answered later; their answers
    /// are dropped.
    pub(super) fn run(&mut self) -> End {
        let end = self.serve().unwrap_or_else(|end| end);
        self.outbox.break_off();
        self.stream.close();
        end
    }

    fn serve(&mut self) -> Result<End, End> {
        // One for the life of the connection, for its memory; it holds nothing between batches.
        let plug = Plug::new(&self.executor.export.device);
        loop {
            let left = self.take_requests(&plug);
            self.send();
            let left = left?;
            if self.outbox.is_broken() {
                return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            }
            if self.state.ending.is_none() && self.stops.load(Ordering::SeqCst) {
                self.state.ending = Some(End::Stopped);
            }
            if self.state.ending.is_some() {
                self.outbox.load.expect();
                // In this order: an answer is in the outbox before the request counts as ended.
                if self.outbox.load.requests() == 0
                    && self.outbox.is_empty()
                    && self.stream.push_out()?
                    && let Some(end) = self.state.ending.take()
                {
                    return Ok(end);
                }
            } else if left == Left::Maybe {
                continue;
            }
            self.wait()?;
        }
    }

    /// Submits what has come, and has its answers wait until that is done.
    fn take_requests(&mut self, plug: &Plug) -> Result<Left, End> {
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
        self.state.long = payload >= LONG;
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

    /// Takes memory for the payload of a write, and what is there of it.
    fn begin_write(&mut self, request: Request, charge: usize) {
        let way = self.own_writes.way(&request);
        let long = match way {
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

    fn send(&mut self) {
        let Self { outbox, stream, .. } = self;
        outbox.send(&mut |next| stream.send(next));
    }

    /// Sleeps until there is something to do, and reads what has come.
    fn wait(&mut self) -> Result<(), End> {
        if let Some(data) = self.state.hungry
            && !self.outbox.load.must_wait(data)
        {
            // The request is in the input, and this thread gave the memory back itself: nothing would
            // wake it.
            self.state.hungry = None;
            return Ok(());
        }
        let reads =
            self.state.ending.is_none() && self.state.hungry.is_none() && !self.outbox.is_clogged();
        // What was decrypted does not show in the socket.
        if reads && self.stream.is_encrypted() && self.receive(Waiting::No)? {
            return Ok(());
        }
        if reads && self.is_alone() && (self.receive_soon()? || self.receive_alone()?) {
            return Ok(());
        }
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, reads);
        let is_out = self.stream.push_out()?;
        wanted.set(PollFlags::OUT, self.outbox.is_blocked() || !is_out);
        let ready = poll::wait(self.stream.socket(), &self.outbox.wake, wanted, self.idle)?;
        if ready.timed_out {
            // A device may take its time; a client may not.
            let waits_for_device = self.outbox.load.requests() > 0 && !self.outbox.is_blocked();
            return if waits_for_device { Ok(()) } else { Err(End::Idle) };
        }
        if ready.writable {
            self.outbox.unblock();
            // Before more requests are taken, which may not be if there is no room for all of it.
            self.send();
        }
        if ready.readable && reads {
            self.receive(Waiting::No)?;
        } else if ready.gone {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        Ok(())
    }

    /// Whether only the client, or the end of the server, can give this thread something to do.
    fn is_alone(&self) -> bool {
        self.idle.is_none()
            && !self.stream.is_encrypted()
            // In this order: a thread that sends has not ended its request.
            && self.outbox.load.requests() == 0
            && !self.outbox.is_blocked()
            && self.outbox.is_empty()
    }

    /// Reads what comes this moment; whether there was something.
    fn receive_soon(&mut self) -> Result<bool, End> {
        let mut busy_poll = std::mem::take(&mut self.busy_poll);
        let found = busy_poll.find(MOMENT, || self.receive(Waiting::No));
        self.busy_poll = busy_poll;
        found
    }

    /// Sleeps in the call that reads, which saves one that polls; whether there was something.
    fn receive_alone(&mut self) -> Result<bool, End> {
        let wake = Arc::clone(&self.outbox.wake);
        let _receiving = wake.receiving();
        // Whoever stops the server sees that this thread receives, or it sees the stop.
        if self.stops.load(Ordering::SeqCst) { Ok(false) } else { self.receive(Waiting::Yes) }
    }

    /// Reads what has come; whether there was something.
    fn receive(&mut self, waiting: Waiting) -> Result<bool, End> {
        let room = self.input.room();
        let most = match &self.state.payload {
            Some(payload) if !payload.write.is_last() => 0,
            _ if self.state.long => room.len().min(HEADERS),
            _ => room.len(),
        };
        let rest = self.state.payload.as_mut().map_or(&mut [][..], Payload::room);
        let wanted = rest.len();
        let mut pieces = [IoSliceMut::new(rest), IoSliceMut::new(&mut room[..most])];
        // An empty first piece would mean the end to some.
        let pieces = if wanted == 0 { &mut pieces[1..] } else { &mut pieces[..] };
        match self.stream.receive(pieces, waiting) {
            Ok(0) => self.state.ending = Some(End::Client),
            Ok(count) => {
                if let Some(payload) = &mut self.state.payload {
                    payload.fill(count.min(wanted));
                }
                self.input.fill(count - count.min(wanted));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }
}
