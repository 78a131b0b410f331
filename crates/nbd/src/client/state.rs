//! What all threads of a device share: requests under way, writes that are kept, the connections.
//!
//! ```text
//! threads --begin--> flights --answers--> leader --> waiters of those who wait
//!                       |                     |
//!                       |                   kept (until a flush is answered)
//!                    supervisor: limits of time; after a break: connects, sends kept, then flights
//! ```
//!
//! One connection that breaks ends the session: all are closed and made anew, since a write that is
//! sent again on one must not pass a newer write on another.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use smallvec::SmallVec;
use undercroft_block::{Failure, Request};

use super::end_reason::EndReason;
use super::export_limits::ExportLimits;
use super::flight::{Flight, Frame, Plan, io_error};
use super::options::ClientOptions;
use super::session::handshake::Dialer;
use super::session::link::Link;
use super::turn::ReceiverTurn;
use super::turn::connection_use::ConnectionUse;
use super::turn::receiver::Receiving;
use super::turn::waiter::{Ended, Waiter};
use super::unflushed::UnflushedWrites;
use super::unflushed::buffer_cache::BufferCache;
use super::unflushed::own_flush::OwnFlush;
use super::zeroes::Zeroes;
use crate::protocol::WireError;

/// Time without a receiver on a connection after which its watcher receives. Tests wait an hour: no
/// request may need it.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 100 });

/// Requests of one connection that servers work on at the same time, most of them (nbdkit, qemu-nbd).
const SERVED_TOGETHER: usize = 16;

/// What the threads of a device share.
pub(crate) struct Shared {
    pub(crate) dialer: Dialer,
    /// How messages call the device.
    pub(crate) name: String,
    pub(crate) options: ClientOptions,
    pub(crate) limits: ExportLimits,
    pub(crate) zeroes: Zeroes,
    pub(crate) buffers: BufferCache,
    /// One for each connection.
    pub(crate) turns: Vec<Arc<ReceiverTurn<Receiving>>>,
    pub(crate) state: Mutex<State>,
    /// For the supervisor: something has changed that it waits for.
    pub(crate) change: Condvar,
}

/// What their lock protects.
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The number of the session.
    pub(crate) epoch: u64,
    /// The connections of the session.
    pub(crate) links: Vec<Arc<Link>>,
    /// By cookie: in the order in which they were begun.
    pub(crate) flights: BTreeMap<u64, Flight>,
    next_cookie: u64,
    /// Those that receivers have for a moment, by cookie, and when they began to wait: the data of a
    /// read may be late, too.
    taken: BTreeMap<u64, Instant>,
    pub(crate) kept: UnflushedWrites,
    own_flush: OwnFlush,
    /// Writes that are answered when there is room for what they wrote.
    withheld: Vec<Ended>,
    /// Why the last session ended.
    pub(crate) why: String,
    /// Whether the session has answered anything.
    pub(crate) useful: bool,
}

/// What a device can do by now.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// Send requests.
    Up,
    /// Keep them, until there are connections again.
    Down,
    /// Refuse them.
    Dead(EndReason),
    /// End.
    Closed,
}

/// The session that a receiver belongs to has ended.
pub(crate) struct Over;

impl Shared {
    /// What threads share of a device on a connection for each of `watchers`.
    pub(crate) fn new(
        dialer: Dialer,
        options: ClientOptions,
        limits: ExportLimits,
        watchers: &[Arc<Waiter>],
    ) -> Self {
        let turn = |watcher: &Arc<Waiter>| Arc::new(ReceiverTurn::new(Arc::clone(watcher), PAUSE));
        let state = State {
            phase: Phase::Down,
            epoch: 0,
            links: Vec::new(),
            flights: BTreeMap::new(),
            next_cookie: 0,
            taken: BTreeMap::new(),
            kept: UnflushedWrites::default(),
            own_flush: OwnFlush::default(),
            withheld: Vec::new(),
            why: String::new(),
            useful: true,
        };
        Self {
            name: dialer.uri.to_string(),
            dialer,
            options,
            limits,
            zeroes: Zeroes::default(),
            buffers: BufferCache::default(),
            turns: watchers.iter().map(turn).collect(),
            state: Mutex::new(state),
            change: Condvar::new(),
        }
    }

    /// Starts `requests` of the thread that waits at the connection `connection`; their ends are told at
    /// `waiter`. Those that end at once are returned.
    pub(crate) fn begin(
        &self,
        requests: impl Iterator<Item = Request>,
        connection: usize,
        waiter: &Arc<Waiter>,
    ) -> Vec<Ended> {
        let (mut flights, mut ended) = (SmallVec::<[Flight; 1]>::new(), Vec::new());
        for request in requests {
            match self.plan(request, connection, waiter) {
                Plan::Send(flight) => flights.push(flight),
                Plan::End(end) => ended.push(end),
            }
        }
        if flights.is_empty() {
            return ended;
        }
        let mut state = self.state.lock();
        let refusal = match &state.phase {
            Phase::Dead(reason) => Some(reason.to_error()),
            Phase::Closed => Some(io::ErrorKind::NotConnected.into()),
            Phase::Up | Phase::Down => None,
        };
        if let Some(refusal) = refusal {
            drop(state);
            let failure = Failure::from(refusal);
            ended.extend(flights.into_iter().filter_map(|flight| flight.end(Err(failure.clone()))));
            return ended;
        }
        let mut by_connection = SmallVec::<[(usize, Arc<Link>, SmallVec<[Frame; 1]>); 1]>::new();
        for flight in flights {
            let connection = flight.connection();
            let link = state.link(connection);
            let frame = state.launch(flight, link.as_deref(), &self.limits);
            match by_connection.iter_mut().find(|(other, ..)| *other == connection) {
                Some((.., frames)) => frames.extend(frame),
                None => by_connection
                    .extend(link.map(|link| (connection, link, frame.into_iter().collect()))),
            }
        }
        drop(state);
        for (at, link, frames) in by_connection {
            match link.send(frames) {
                Ok(true) => {}
                // This thread comes to receive at its own connection soon, and finds it then if there
                // is no leader.
                Ok(false) => self.turns[at].stir(at != connection),
                Err(error) => self.broke(link.epoch, &error),
            }
        }
        ended
    }

    /// The connection `preferred`, unless that has all that servers work on at a time and another
    /// has not: then the one with the fewest requests.
    pub(crate) fn roomy(&self, preferred: usize) -> usize {
        let has_room = |turn: &ReceiverTurn<Receiving>| turn.load() < SERVED_TOGETHER;
        if has_room(&self.turns[preferred]) {
            return preferred;
        }
        let others = self.turns.iter().enumerate().filter(|(_, turn)| has_room(turn));
        others.min_by_key(|(_, turn)| turn.load()).map_or(preferred, |(index, _)| index)
    }

    /// What a request takes; one of zeroes, nothing where there are zeroes.
    fn plan(&self, mut request: Request, connection: usize, waiter: &Arc<Waiter>) -> Plan {
        let offset = request.sector().0 * undercroft_block::SECTOR_SIZE;
        let length = request.length();
        if self.zeroes.cover(offset, length) {
            use undercroft_block::Operation::{Discard, Read, WriteZeroes};
            match request.operation() {
                Read => {
                    request.scatter().for_each(|piece| piece.fill(0));
                    return Plan::End(Ended {
                        request,
                        waiter: Arc::clone(waiter),
                        result: Ok(()),
                    });
                }
                WriteZeroes | Discard => {
                    return Plan::End(Ended {
                        request,
                        waiter: Arc::clone(waiter),
                        result: Ok(()),
                    });
                }
                _ => {}
            }
        }
        if request.operation().modifies() {
            self.zeroes.forget(offset, length);
        }
        let index = self.roomy(connection);
        let connection_use = self.connection_use(index, index != connection);
        Flight::plan(request, connection_use, waiter, &self.limits, &self.buffers)
    }

    /// The use of the connection `index`.
    fn connection_use(&self, index: usize, is_expected: bool) -> ConnectionUse {
        let turn = Arc::clone(&self.turns[index]);
        ConnectionUse::new(turn, index, is_expected)
    }

    /// Takes the flight of `cookie`, an answer to which came in the session `epoch`; none if there is
    /// none of this number.
    pub(crate) fn take(&self, epoch: u64, cookie: u64) -> Result<Option<Flight>, Over> {
        let mut state = self.state.lock();
        if state.epoch != epoch || !matches!(state.phase, Phase::Up) {
            return Err(Over);
        }
        let flight = state.flights.remove(&cookie);
        if let Some(flight) = &flight {
            state.taken.insert(cookie, flight.since);
        }
        Ok(flight)
    }

    /// Gives a flight back that is not answered yet. The session may have ended meanwhile: it is
    /// sent again then. On a device that is dead, it ends.
    pub(crate) fn put_back(&self, cookie: u64, flight: Flight) {
        let mut state = self.state.lock();
        state.taken.remove(&cookie);
        let reason = match &state.phase {
            Phase::Dead(reason) => reason.clone(),
            Phase::Up | Phase::Down | Phase::Closed => {
                state.flights.insert(cookie, flight);
                return;
            }
        };
        drop(state);
        flight.end(Err(reason.to_error().into())).into_iter().for_each(Ended::deliver);
    }

    /// Notes that the flight of `cookie` is answered, with success unless it has an error; what ends
    /// by that goes to `out`.
    pub(crate) fn answered(&self, cookie: u64, flight: Flight, epoch: u64, out: &mut Vec<Ended>) {
        let mut state = self.state.lock();
        state.taken.remove(&cookie);
        state.useful = true;
        if let Phase::Dead(reason) = &state.phase {
            // It may need more commands, and none is sent any more.
            out.extend(flight.end(Err(reason.to_error().into())));
            return;
        }
        match flight.error {
            Some(error) => self.refused(&mut state, flight, error, epoch, out),
            None => self.succeeded(&mut state, flight, out),
        }
    }

    fn refused(
        &self,
        state: &mut MutexGuard<'_, State>,
        flight: Flight,
        error: WireError,
        epoch: u64,
        out: &mut Vec<Ended>,
    ) {
        match error {
            // The server goes away, and perhaps comes back.
            WireError::Shutdown => {
                state.board(flight);
                self.break_session(state, epoch, &io_error(error));
            }
            _ if flight.request.is_none() => {
                // Answered writes are not durable, and there is no other request to fail.
                let reason = EndReason::NotFlushed { device: self.name.clone(), error };
                out.extend(state.die(&reason));
                self.change.notify_all();
            }
            _ => out.extend(flight.end(Err(io_error(error).into()))),
        }
    }

    fn succeeded(
        &self,
        state: &mut MutexGuard<'_, State>,
        mut flight: Flight,
        out: &mut Vec<Ended>,
    ) {
        let since = flight.since;
        let change = if self.limits.keeps() { flight.change(&self.limits) } else { None };
        let is_kept = change.is_some();
        if let Some(change) = change {
            state.kept.push(change);
        }
        if flight.is_flush() {
            // What begins the next flush has room in it.
            self.buffers.put(state.kept.release(flight.mark), self.options.unflushed / 2);
            state.own_flush.flushed(since.elapsed());
        }
        let connection = flight.connection();
        if flight.go_on(&self.limits) {
            self.send(state, flight);
        } else if flight.request.is_none() {
            state.own_flush.answered();
        } else if let Some(ended) = flight.end(Ok(())) {
            let full = is_kept && state.kept.bytes() > self.options.unflushed;
            if full { state.withheld.push(ended) } else { out.push(ended) }
        }
        if state.kept.bytes() <= self.options.unflushed {
            out.append(&mut state.withheld);
        }
        let kept = state.kept.amount();
        if state.own_flush.is_due(kept, self.options.unflushed, || since.elapsed()) {
            state.own_flush.sent();
            // No thread waits for its answer, and those whose writes are withheld may wait elsewhere.
            self.send(state, Flight::own_flush(self.connection_use(connection, true)));
        }
    }

    /// Sends the next command of a flight.
    fn send(&self, state: &mut MutexGuard<'_, State>, flight: Flight) {
        let connection = flight.connection();
        let link = state.link(connection);
        let frame = state.launch(flight, link.as_deref(), &self.limits);
        if let Some(link) = link {
            self.send_on(state, connection, &link, frame);
        }
    }

    /// Sends `frames` on the connection `connection`, whose answers a thread has to wait for.
    pub(crate) fn send_on(
        &self,
        state: &mut MutexGuard<'_, State>,
        connection: usize,
        link: &Link,
        frames: impl IntoIterator<Item = Frame>,
    ) {
        match link.send(frames) {
            Ok(true) => {}
            Ok(false) => self.turns[connection].stir(true),
            Err(error) => self.break_session(state, link.epoch, &error),
        }
    }

    /// Ends the session `epoch`, if that is the one there is.
    pub(crate) fn broke(&self, epoch: u64, why: &io::Error) {
        let mut state = self.state.lock();
        self.break_session(&mut state, epoch, why);
    }

    fn break_session(&self, state: &mut MutexGuard<'_, State>, epoch: u64, why: &io::Error) {
        if state.epoch != epoch || !matches!(state.phase, Phase::Up) {
            return;
        }
        state.phase = Phase::Down;
        state.why = match why.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => why.to_string(),
        };
        state.links.iter().for_each(|link| link.shut());
        self.change.notify_all();
    }
}

impl State {
    /// The connection with this number; none while there is no session.
    fn link(&self, connection: usize) -> Option<Arc<Link>> {
        let up = matches!(self.phase, Phase::Up);
        self.links.get(connection).filter(|_| up).map(Arc::clone)
    }

    /// Notes a flight that is to be sent, under a new cookie.
    fn board(&mut self, flight: Flight) -> u64 {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.flights.insert(cookie, flight);
        cookie
    }

    /// Notes a flight; returns what has to be sent on `link`, if there is a session.
    fn launch(
        &mut self,
        mut flight: Flight,
        link: Option<&Link>,
        limits: &ExportLimits,
    ) -> Option<Frame> {
        flight.mark = self.kept.mark();
        let cookie = self.next_cookie;
        let frame = link.map(|link| flight.frame(cookie, link.dialect, limits));
        self.board(flight);
        frame
    }

    /// Begins the session of `links`; returns what is under way, to be sent on each of them.
    pub(crate) fn begin_session(
        &mut self,
        links: Vec<Arc<Link>>,
        limits: &ExportLimits,
    ) -> Vec<(Arc<Link>, Vec<Frame>)> {
        (self.phase, self.links, self.useful) = (Phase::Up, links, false);
        let mark = self.kept.mark();
        let mut frames: Vec<_> =
            self.links.iter().map(|link| (Arc::clone(link), Vec::new())).collect();
        for (cookie, flight) in &mut self.flights {
            flight.mark = mark;
            if let Some((link, frames)) = frames.get_mut(flight.connection()) {
                frames.push(flight.frame(*cookie, link.dialect, limits));
            }
        }
        frames
    }

    /// When the first request under way has waited for `limit`.
    pub(crate) fn deadline(&self, limit: Duration) -> Option<Instant> {
        let flights = self.flights.values().map(|flight| flight.since);
        let first = flights.chain(self.taken.values().copied()).min();
        first.and_then(|first| first.checked_add(limit))
    }

    /// Takes out what has waited for `limit`, with this reason.
    pub(crate) fn expire(&mut self, limit: Duration, reason: &EndReason) -> Vec<Ended> {
        let now = Instant::now();
        let is_late =
            |flight: &Flight| flight.since.checked_add(limit).is_some_and(|until| until <= now);
        let late = self.flights.iter().filter(|(_, flight)| is_late(flight));
        let late: Vec<u64> = late.map(|(cookie, _)| *cookie).collect();
        let ended = |cookie| self.flights.remove(&cookie)?.end(Err(reason.to_error().into()));
        late.into_iter().filter_map(ended).collect()
    }

    /// Ends the device: all that is under way, and all that follows, fails with `reason`.
    pub(crate) fn die(&mut self, reason: &EndReason) -> Vec<Ended> {
        self.phase = Phase::Dead(reason.clone());
        self.kept.clear();
        self.links.iter().for_each(|link| link.shut());
        let failure = Failure::from(reason.to_error());
        let flights = std::mem::take(&mut self.flights).into_values();
        let flights = flights.filter_map(|flight| flight.end(Err(failure.clone())));
        let withheld = std::mem::take(&mut self.withheld).into_iter();
        let withheld = withheld.map(|ended| Ended { result: Err(failure.clone()), ..ended });
        flights.chain(withheld).collect()
    }
}
