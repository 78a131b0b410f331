//! A connection after the handshake: reads requests, and sleeps when there is nothing to do.

pub(crate) mod busy_poll;
mod end;
pub(crate) mod handshake;
pub(crate) mod input;
mod listener;
pub(crate) mod negotiation;
pub(crate) mod poll;
pub(crate) mod quota;
pub(crate) mod stream;
mod tls;

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
use undercroft_block::Plug;

use self::busy_poll::BusyPoll;
pub(crate) use self::end::End;
use self::input::Input;
pub use self::listener::Listener;
use self::stream::Stream;
pub use self::tls::{Tls, TlsError};
use super::answer::Outbox;
use super::request::execute::Executor;
use super::write::own::OwnWrites;
use super::write::payload::Payload;
use super::write::spliced::SplicedWrite;

/// How long it looks before it sleeps: as long as a client's thread takes to wake, to take an answer in
/// several calls and to ask again. With 20 us reads that come one after the other are missed in a
/// virtual machine.
const MOMENT: Duration = Duration::from_micros(50);

/// A connection in the transmission phase.
pub(crate) struct Connection<'c> {
    pub(crate) stream: Stream,
    pub(crate) input: Input,
    pub(crate) executor: Executor,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) stops: &'c AtomicBool,
    pub(crate) idle: Option<Duration>,
    pub(crate) own_writes: OwnWrites,
    busy_poll: BusyPoll,
    pub(crate) state: State,
}

/// Where in the stream of requests the thread is.
#[derive(Default)]
pub(crate) struct State {
    /// What has not come of the payload of a write. No input is behind it.
    pub(crate) payload: Option<Payload>,
    /// A write whose payload is in the socket. No input is before it.
    pub(crate) spliced: Option<SplicedWrite>,
    /// Bytes of a payload that are not used.
    pub(crate) skip: u64,
    /// Bytes that are read at most beside a payload; none: as many as there is room for. After a long
    /// write the next one may be one, too.
    pub(crate) ahead: Option<usize>,
    /// Bytes of data of the requests under the plug.
    pub(crate) batch: u64,
    /// The data of a request that waits for memory, in bytes.
    pub(crate) hungry: Option<usize>,
    /// Why nothing more is read.
    pub(crate) ending: Option<End>,
}

/// Whether requests may be in the input still.
#[derive(PartialEq)]
pub(crate) enum Left {
    Maybe,
    Nothing,
}

impl<'c> Connection<'c> {
    pub(crate) fn new(
        stream: Stream,
        input: Input,
        executor: Executor,
        outbox: Arc<Outbox>,
        stops: &'c AtomicBool,
        idle: Option<Duration>,
    ) -> Self {
        let (own_writes, busy_poll) = (OwnWrites::default(), BusyPoll::default());
        let state = State::default();
        Self { stream, input, executor, outbox, stops, idle, own_writes, busy_poll, state }
    }

    /// Serves until the connection ends. Requests of the device may be answered later; their answers
    /// are dropped.
    pub(crate) fn run(&mut self) -> End {
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
                self.outbox.quota.expect();
                // In this order: an answer is in the outbox before the request counts as ended.
                if self.outbox.quota.requests() == 0
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

    fn send(&mut self) {
        let Self { outbox, stream, .. } = self;
        outbox.send(&mut |next| stream.send(next));
    }

    /// Sleeps until there is something to do, and reads what has come.
    fn wait(&mut self) -> Result<(), End> {
        if let Some(data) = self.state.hungry
            && !self.outbox.quota.must_wait(data)
        {
            // The request is in the input, and this thread gave the memory back itself: nothing would
            // wake it.
            self.state.hungry = None;
            return Ok(());
        }
        let reads =
            self.state.ending.is_none() && self.state.hungry.is_none() && !self.outbox.is_clogged();
        // What was decrypted does not show in the socket.
        if reads && self.stream.is_encrypted() && self.receive()? {
            return Ok(());
        }
        if reads && self.state.spliced.is_some() {
            if self.sees_spliced()? {
                return Ok(());
            }
        } else if reads && self.is_alone() && self.receive_soon()? {
            return Ok(());
        }
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, reads);
        let is_out = self.stream.push_out()?;
        wanted.set(PollFlags::OUT, self.outbox.is_blocked() || !is_out);
        let ready = poll::wait(self.stream.socket(), &self.outbox.wake, wanted, self.idle)?;
        if ready.timed_out {
            // A device may take its time; a client may not.
            let waits_for_device = self.outbox.quota.requests() > 0 && !self.outbox.is_blocked();
            return if waits_for_device { Ok(()) } else { Err(End::Idle) };
        }
        if ready.writable {
            self.outbox.unblock();
            // Before more requests are taken, which may not be if there is no room for all of it.
            self.send();
        }
        if ready.readable && reads && self.state.spliced.is_some() {
            if self.ends_in_payload()? {
                self.state.ending = Some(End::Client);
            }
        } else if ready.readable && reads {
            self.receive()?;
        } else if ready.gone {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        Ok(())
    }

    /// Whether only the client, or the end of the server, can give this thread something to do.
    pub(crate) fn is_alone(&self) -> bool {
        !self.stream.is_encrypted()
            // In this order: a thread that sends has not ended its request.
            && self.outbox.quota.requests() == 0
            && !self.outbox.is_blocked()
            && self.outbox.is_empty()
    }

    /// Reads what comes this moment; whether there was something.
    fn receive_soon(&mut self) -> Result<bool, End> {
        let mut busy_poll = std::mem::take(&mut self.busy_poll);
        let found = busy_poll.find(MOMENT, || self.receive());
        self.busy_poll = busy_poll;
        found
    }

    /// Reads what has come; whether there was something.
    fn receive(&mut self) -> Result<bool, End> {
        let room = self.input.room();
        let most = self.state.ahead.map_or(room.len(), |ahead| ahead.min(room.len()));
        let rest = self.state.payload.as_mut().map_or(&mut [][..], Payload::room);
        let wanted = rest.len();
        let mut pieces = [IoSliceMut::new(rest), IoSliceMut::new(&mut room[..most])];
        // An empty first piece would mean the end to some.
        let pieces = if wanted == 0 { &mut pieces[1..] } else { &mut pieces[..] };
        match self.stream.receive(pieces) {
            Ok(0) => self.state.ending = Some(End::Client),
            Ok(count) => {
                let filled = count.min(wanted);
                if let Some(payload) = &mut self.state.payload {
                    payload.fill(filled);
                }
                self.input.fill(count - filled);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }
}
