//! The thread that keeps a device going: limits of time, and new connections after a break.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::handshake::Connection;
use super::link::Link;
use crate::client::end_reason::EndReason;
use crate::client::error::ClientError;
use crate::client::state::{Phase, Shared, State};
use crate::client::turn::receiver::Receiving;
use crate::client::turn::waiter::Ended;

/// Pauses between attempts to connect: from the first one on each is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What an attempt to connect has led to; none while it is under way.
type Attempt = Arc<Mutex<Option<Result<Vec<Connection>, ClientError>>>>;

/// The thread, and those that it looks after.
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    attempt: Option<Attempt>,
    /// When the next attempt may begin.
    next: Instant,
    pause: Duration,
}

impl Supervisor {
    /// One for `shared`.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let (next, pause) = (Instant::now(), Duration::ZERO);
        Self { shared: Arc::clone(shared), attempt: None, next, pause }
    }

    /// The life of the thread: until the device is closed.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state.lock();
        loop {
            match &state.phase {
                Phase::Closed => break,
                Phase::Down => self.work_on_session(&mut state),
                Phase::Up | Phase::Dead(_) => {}
            }
            self.mind_limits(&mut state);
            if matches!(state.phase, Phase::Closed) {
                break;
            }
            let until = self.wake(&state);
            if shared.change.wait_until(&mut state, until).timed_out() {
                shared.buffers.shrink();
            }
        }
    }

    /// When it has to look again, if nothing happens before.
    fn wake(&self, state: &State) -> Instant {
        let limit = self.shared.options.timeout;
        // A request that begins meanwhile is found late by so much at most.
        let mut until = Instant::now() + limit / 8;
        if let Some(deadline) = state.deadline(limit) {
            until = until.min(deadline);
        }
        if matches!(state.phase, Phase::Down) && self.attempt.is_none() {
            until = until.min(self.next);
        }
        until
    }

    /// Without connections: waits for the old ones, then tries to get new ones.
    fn work_on_session(&mut self, state: &mut MutexGuard<'_, State>) {
        if !state.links.is_empty() {
            state.links.clear();
            // One that broke before it was of use is like one that could not be made.
            self.pause = if state.useful { Duration::ZERO } else { longer(self.pause) };
            self.next = Instant::now() + self.pause;
            // Threads that receive give back what they have.
            MutexGuard::unlocked(state, || self.shared.turns.iter().for_each(|turn| turn.retire()));
            return;
        }
        let result = self.attempt.as_ref().and_then(|attempt| attempt.lock().take());
        match result {
            Some(Ok(connections)) => {
                self.attempt = None;
                if let Err(error) = self.install(state, connections) {
                    self.postpone(state, &error.to_string());
                }
            }
            Some(Err(error)) if error.is_final() => {
                self.attempt = None;
                let reason = EndReason::Refused(error.to_string().into());
                self.end(state, &reason);
            }
            Some(Err(error)) => {
                self.attempt = None;
                self.postpone(state, &error.to_string());
            }
            None if self.attempt.is_none() && self.next <= Instant::now() => {
                if let Err(error) = self.try_to_connect(state) {
                    self.postpone(state, &error.to_string());
                }
            }
            None => {}
        }
    }

    fn postpone(&mut self, state: &mut State, why: &str) {
        why.clone_into(&mut state.why);
        self.pause = longer(self.pause);
        self.next = Instant::now() + self.pause;
    }

    /// Connects in another thread, so that limits are kept meanwhile.
    fn try_to_connect(&mut self, state: &State) -> io::Result<()> {
        let (shared, changes) = (Arc::clone(&self.shared), state.kept.snapshot());
        let attempt = Attempt::default();
        let result = Arc::clone(&attempt);
        std::thread::Builder::new().name("nbd-connect".to_owned()).spawn(move || {
            let (wanted, limit) = (shared.options.connections, shared.options.timeout);
            let made = shared.dialer.reopen(&shared.limits, &changes, wanted, limit);
            *result.lock() = Some(made);
            // Under the lock, so that the supervisor has either seen the result or waits.
            let state = shared.state.lock();
            shared.change.notify_all();
            drop(state);
        })?;
        self.attempt = Some(attempt);
        Ok(())
    }

    /// Begins a session on `connections`.
    pub(crate) fn install(
        &mut self,
        state: &mut MutexGuard<'_, State>,
        connections: Vec<Connection>,
    ) -> io::Result<()> {
        state.epoch += 1;
        let (mut links, mut receiving) = (Vec::new(), Vec::new());
        for connection in connections {
            let Connection { socket, receiver, sender, terms } = connection;
            // From here on the supervisor minds the limits.
            socket.set_deadline(None);
            let link = Arc::new(Link::new(state.epoch, terms.dialect, socket, sender));
            receiving.push(Receiving::new(&link, receiver, terms));
            links.push(link);
        }
        let frames = state.begin_session(links, &self.shared.limits);
        for (turn, receiving) in self.shared.turns.iter().zip(receiving) {
            turn.open(receiving);
        }
        for (connection, (link, frames)) in frames.into_iter().enumerate() {
            self.shared.send_on(state, connection, &link, frames);
        }
        Ok(())
    }

    /// Ends what has waited too long; and the device, if it may have lost a write by that.
    fn mind_limits(&mut self, state: &mut MutexGuard<'_, State>) {
        let limit = self.shared.options.timeout;
        if state.deadline(limit).is_none_or(|deadline| deadline > Instant::now()) {
            return;
        }
        let device = self.shared.name.clone();
        let unflushed = state.kept.len();
        let reason = EndReason::NoAnswer { device, limit, why: state.why.clone(), unflushed };
        if !self.shared.limits.read_only {
            self.end(state, &reason);
            return;
        }
        // A device that is only read can go on at any time.
        let ended = state.expire(limit, &reason);
        let epoch = state.epoch;
        MutexGuard::unlocked(state, || {
            ended.into_iter().for_each(Ended::deliver);
            self.shared.broke(epoch, &reason.to_error());
        });
    }

    fn end(&self, state: &mut MutexGuard<'_, State>, reason: &EndReason) {
        let ended = state.die(reason);
        MutexGuard::unlocked(state, || ended.into_iter().for_each(Ended::deliver));
    }
}

fn longer(pause: Duration) -> Duration {
    (2 * pause).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}
