//! A connection after the handshake: reads requests, and sleeps when there is nothing to do.

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::PollFlags;
use undercroft_block::Plug;

use super::end::End;
use super::execute::Executor;
use super::input::Input;
use super::long_write::LongWrite;
use super::outbox::Outbox;
use super::own_writes::OwnWrites;
use super::payload::Payload;
use super::poll;
use super::stream::Stream;
use super::unread::Unread;
use crate::busy_poll::BusyPoll;

/// How long it looks before it sleeps: as long as a client's thread takes to wake, to take an answer in
/// several calls and to ask again. With 20 us reads that come one after the other are missed in a
/// virtual machine.
const MOMENT: Duration = Duration::from_micros(50);

/// A connection in the transmission phase.
pub(super) struct Connection<'c> {
    pub(super) stream: Stream,
    pub(super) input: Input,
    pub(super) executor: Executor,
    pub(super) outbox: Arc<Outbox>,
    pub(super) stops: &'c AtomicBool,
    pub(super) idle: Option<Duration>,
    pub(super) own_writes: OwnWrites<'c>,
    pub(super) unread: Unread,
    busy_poll: BusyPoll,
    pub(super) state: State,
}

/// Where in the stream of requests the thread is.
#[derive(Default)]
pub(super) struct State {
    /// What has not come of the payload of a write. No input is behind it.
    pub(super) payload: Option<Payload>,
    /// A write whose payload is in the socket. No input is before it.
    pub(super) spliced: Option<LongWrite>,
    /// Bytes of a payload that are not used.
    pub(super) skip: u64,
    /// Bytes that are read at most beside a payload; none: as many as there is room for. After a long
    /// write the next one may be one, too.
    pub(super) ahead: Option<usize>,
    /// Bytes that are in the socket, at least, while requests are taken.
    pub(super) arrived: usize,
    /// Bytes of data of the requests under the plug.
    pub(super) batch: u64,
    /// The data of a request that waits for memory, in bytes.
    pub(super) hungry: Option<usize>,
    /// Why nothing more is read.
    pub(super) ending: Option<End>,
}

/// Whether requests may be in the input still.
#[derive(PartialEq)]
pub(super) enum Left {
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
        let unread = Unread::new(stream.socket());
        let (busy_poll, state) = (BusyPoll::default(), State::default());
        Self { stream, input, executor, outbox, stops, idle, own_writes, unread, busy_poll, state }
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
        if reads && self.stream.is_encrypted() && self.receive()? {
            return Ok(());
        }
        if reads && self.state.spliced.is_some() && self.has_spliced_part()? {
            return Ok(());
        }
        if reads && self.state.spliced.is_none() && self.is_alone() {
            self.unread.pause(self.stream.socket());
            if self.receive_soon()? {
                return Ok(());
            }
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
        if ready.readable && reads && self.state.spliced.is_some() {
            self.see_spliced()?;
        } else if ready.readable && reads {
            self.receive()?;
        } else if ready.gone {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        Ok(())
    }

    /// Whether only the client, or the end of the server, can give this thread something to do.
    fn is_alone(&self) -> bool {
        !self.stream.is_encrypted()
            // In this order: a thread that sends has not ended its request.
            && self.outbox.load.requests() == 0
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
        let most = match &self.state.payload {
            Some(payload) if !payload.write.is_last() => 0,
            _ => self.state.ahead.map_or(room.len(), |ahead| ahead.min(room.len())),
        };
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
