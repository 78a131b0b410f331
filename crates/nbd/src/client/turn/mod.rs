//! Who receives from a connection: at each time one thread, and rather one that waits for an answer
//! than one that would have to be woken to tell another.
//!
//! ```text
//! lead --> receives for all --> leave --> the next one that waits
//!             ^                    |
//!             +---- watcher <------+  no leader for a while: it receives until a thread waits
//! ```
//!
//! A thread that leaves with its answer most often comes back with the next request. So the watcher
//! is not called then; it looks by itself, from time to time, whether the place is taken.

pub(crate) mod connection_use;
mod receive;
pub(crate) mod receiver;
pub(crate) mod waiter;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use self::connection_use::CountUses;
use self::waiter::Waiter;

/// The place of the thread that receives from a connection, in all sessions of a device; `R` is what
/// it receives with.
pub(crate) struct ReceiverTurn<R> {
    state: Mutex<TurnState<R>>,
    watcher: Arc<Waiter>,
    /// Time without a leader after which the watcher leads.
    pause: Duration,
    /// For the watcher.
    unattended: Condvar,
    /// For the thread that retires the turn.
    left: Condvar,
    /// Requests that use the connection.
    load: AtomicUsize,
}

struct TurnState<R> {
    /// While there is a session and no leader.
    free: Option<R>,
    leader: Option<Arc<Waiter>>,
    /// They sleep, and would lead.
    waiting: VecDeque<Arc<Waiter>>,
    /// Was called to lead.
    next: Option<Arc<Waiter>>,
    /// Changes of the leader.
    changes: u64,
    /// The watcher need not wait.
    hurry: bool,
    /// Answers that no thread waits for here, though they are wanted soon: of threads that sleep
    /// elsewhere, and of a flush of the client's own.
    expecting: usize,
    has_session: bool,
    closed: bool,
}

impl<R> ReceiverTurn<R> {
    /// One without a session, where the watcher leads after a `pause` without a leader.
    pub(crate) fn new(watcher: Arc<Waiter>, pause: Duration) -> Self {
        let state = TurnState {
            free: None,
            leader: None,
            waiting: VecDeque::new(),
            next: None,
            changes: 0,
            hurry: false,
            expecting: 0,
            has_session: false,
            closed: false,
        };
        let (unattended, left) = (Condvar::new(), Condvar::new());
        let load = AtomicUsize::new(0);
        Self { state: Mutex::new(state), watcher, pause, unattended, left, load }
    }

    /// Requests that use the connection.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Makes the thread at `waiter` the leader if there is none. If it `waits`, it is called else when
    /// its turn comes.
    pub(crate) fn lead(&self, waiter: &Arc<Waiter>, waits: bool) -> Option<R> {
        let mut state = self.state.lock();
        let invited = state.next.as_ref().is_none_or(|next| Arc::ptr_eq(next, waiter));
        if invited && state.free.is_some() {
            state.remove(waiter);
            return state.start(waiter);
        }
        if waits {
            if !state.knows(waiter) {
                state.waiting.push_back(Arc::clone(waiter));
            }
            if state.leader.as_ref().is_some_and(|leader| Arc::ptr_eq(leader, &self.watcher)) {
                self.watcher.call();
            }
        }
        None
    }

    /// The leader goes, and leaves what it received with unless that is of no use any more.
    pub(crate) fn leave(&self, receiving: Option<R>) {
        let mut state = self.state.lock();
        state.leader = None;
        state.changes += 1;
        state.free = receiving.filter(|_| state.has_session);
        state.invite();
        if state.expecting > 0 && state.next.is_none() {
            self.unattended.notify_all();
        }
        drop(state);
        self.left.notify_all();
    }

    /// The thread at `waiter` does not wait any more, unless it `returns` at once.
    pub(crate) fn depart(&self, waiter: &Arc<Waiter>, returns: bool) {
        let mut state = self.state.lock();
        let invited = state.next.as_ref().is_some_and(|next| Arc::ptr_eq(next, waiter));
        if invited && returns {
            return;
        }
        state.remove(waiter);
        state.invite();
    }

    /// Gives the turn the connection of a session.
    pub(crate) fn open(&self, receiving: R) {
        let mut state = self.state.lock();
        (state.free, state.has_session, state.hurry) = (Some(receiving), true, true);
        state.invite();
        self.unattended.notify_all();
    }

    /// Takes the connection away, and waits until its leader has left. It must be shut.
    pub(crate) fn retire(&self) {
        let mut state = self.state.lock();
        (state.has_session, state.free, state.next) = (false, None, None);
        while state.leader.is_some() {
            self.left.wait(&mut state);
        }
    }

    /// Has a thread look at the connection now. Without a leader that is the watcher, if
    /// `unattended` is set.
    pub(crate) fn stir(&self, unattended: bool) {
        let mut state = self.state.lock();
        let leader = state.leader.clone();
        if unattended && leader.as_ref().is_none_or(|leader| Arc::ptr_eq(leader, &self.watcher)) {
            state.hurry = true;
            self.unattended.notify_all();
        }
        drop(state);
        if let Some(leader) = leader {
            leader.call();
        }
    }

    /// Nobody waits here for an answer that is wanted soon. The watcher does while there is no leader.
    pub(crate) fn expect(&self) {
        let mut state = self.state.lock();
        state.expecting += 1;
        if state.leader.is_none() {
            self.unattended.notify_all();
        }
    }

    /// It has come, or a thread waits for it.
    pub(crate) fn ignore(&self) {
        self.state.lock().expecting -= 1;
    }

    /// Ends the watcher.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.unattended.notify_all();
        self.watcher.call();
    }

    /// The watcher waits until there was no leader for a while, and leads then; none when the turn is
    /// closed.
    pub(crate) fn watch(&self) -> Option<R> {
        let mut state = self.state.lock();
        let mut seen = None;
        loop {
            self.watcher.hear();
            if state.closed {
                return None;
            }
            let is_idle = state.hurry || state.expecting > 0 || seen == Some(state.changes);
            if is_idle && state.free.is_some() {
                (state.hurry, state.next) = (false, None);
                return state.start(&self.watcher);
            }
            seen = Some(state.changes);
            if state.free.is_some() || state.leader.is_some() {
                self.unattended.wait_for(&mut state, self.pause);
            } else {
                self.unattended.wait(&mut state);
            }
        }
    }
}

impl<R: Send> CountUses for ReceiverTurn<R> {
    fn enter(&self, is_expected: bool) {
        self.load.fetch_add(1, Ordering::Relaxed);
        if is_expected {
            self.expect();
        }
    }

    fn leave(&self, is_expected: bool) {
        self.load.fetch_sub(1, Ordering::Relaxed);
        if is_expected {
            self.ignore();
        }
    }
}

impl<R> TurnState<R> {
    fn start(&mut self, waiter: &Arc<Waiter>) -> Option<R> {
        self.changes += 1;
        self.leader = Some(Arc::clone(waiter));
        self.free.take()
    }

    /// Whether `waiter` waits or was called.
    fn knows(&self, waiter: &Arc<Waiter>) -> bool {
        self.next.iter().chain(&self.waiting).any(|other| Arc::ptr_eq(other, waiter))
    }

    fn remove(&mut self, waiter: &Arc<Waiter>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        if self.next.as_ref().is_some_and(|next| Arc::ptr_eq(next, waiter)) {
            self.next = None;
        }
    }

    /// Calls the next one to lead, if there is no leader.
    fn invite(&mut self) {
        if self.free.is_some() && self.next.is_none() {
            self.next = self.waiting.pop_front();
            if let Some(next) = &self.next {
                next.call();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::event::PollFlags;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(100);

    /// A server that answers each byte with itself, and those who ask it.
    struct Asking {
        turn: ReceiverTurn<UnixStream>,
        sender: UnixStream,
        waiters: Vec<Arc<Waiter>>,
        /// How many answers each has got.
        answers: Vec<AtomicU32>,
    }

    impl Asking {
        fn new(askers: usize) -> (Self, std::thread::JoinHandle<()>) {
            let (here, there) = UnixStream::pair().unwrap();
            let echo = std::thread::spawn(move || {
                let (mut from, mut to) = (&there, &there);
                let mut bytes = [0; 64];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    to.write_all(&bytes[..count]).unwrap();
                }
            });
            let turn = ReceiverTurn::new(Waiter::new().unwrap(), PAUSE);
            let receiver = here.try_clone().unwrap();
            receiver.set_nonblocking(true).unwrap();
            turn.open(receiver);
            let waiters = (0..askers).map(|_| Waiter::new().unwrap()).collect();
            let answers = (0..askers).map(|_| AtomicU32::new(0)).collect();
            (Self { turn, sender: here, waiters, answers }, echo)
        }

        fn has(&self, own: usize, answers: u32) -> bool {
            self.answers[own].load(Ordering::SeqCst) >= answers
        }

        /// As a device does it: receives until it has so many answers or is called.
        fn receive(&self, own: usize, answers: u32, mut socket: &UnixStream) {
            let mut bytes = [0; 3];
            while !self.has(own, answers) && !self.waiters[own].is_called() {
                match socket.read(&mut bytes) {
                    Ok(count) => bytes[..count].iter().for_each(|&asker| {
                        self.answers[asker as usize].fetch_add(1, Ordering::SeqCst);
                        if asker as usize != own {
                            self.waiters[asker as usize].call();
                        }
                    }),
                    Err(_) => {
                        self.waiters[own].sleep(Some((socket.as_fd(), PollFlags::IN))).unwrap();
                    }
                }
            }
        }

        fn wait(&self, own: usize, answers: u32) {
            let waiter = &self.waiters[own];
            while !self.has(own, answers) {
                match self.turn.lead(waiter, true) {
                    Some(socket) => {
                        self.receive(own, answers, &socket);
                        self.turn.leave(Some(socket));
                    }
                    None => {
                        waiter.sleep(None).unwrap();
                        waiter.hear();
                        self.turn.depart(waiter, !self.has(own, answers));
                        continue;
                    }
                }
                waiter.hear();
            }
        }

        fn ask(&self, own: usize) {
            (&self.sender).write_all(&[own as u8]).unwrap();
        }
    }

    /// There is no watcher here that would mend what was forgotten: then this would hang.
    #[test]
    fn a_thread_that_waits_always_receives() {
        const ROUNDS: u32 = 5_000;
        let (asking, echo) = Asking::new(4);
        std::thread::scope(|scope| {
            for own in 0..4 {
                let asking = &asking;
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        asking.ask(own);
                        asking.wait(own, round);
                    }
                });
            }
        });
        let state = asking.turn.state.lock();
        assert!(state.leader.is_none() && state.next.is_none() && state.waiting.is_empty());
        assert!(state.free.is_some());
        drop(state);
        drop(asking);
        echo.join().unwrap();
    }

    /// The first one is called to lead, and does something else.
    #[test]
    fn the_watcher_stands_in_for_one_who_does_not_come() {
        let (asking, echo) = Asking::new(2);
        let first = &asking.waiters[0];
        let socket = asking.turn.lead(&asking.waiters[1], true).unwrap();
        assert!(asking.turn.lead(first, true).is_none());
        asking.turn.leave(Some(socket));
        assert!(first.is_called());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Some(socket) = asking.turn.watch() {
                    while !asking.turn.watcher.is_called() {
                        let mut bytes = [0; 1];
                        if (&socket).read(&mut bytes).is_ok() {
                            asking.answers[usize::from(bytes[0])].fetch_add(1, Ordering::SeqCst);
                            asking.waiters[usize::from(bytes[0])].call();
                        } else {
                            let wanted = Some((socket.as_fd(), PollFlags::IN));
                            asking.turn.watcher.sleep(wanted).unwrap();
                        }
                    }
                    asking.turn.leave(Some(socket));
                }
            });
            for round in 1..=20 {
                asking.ask(1);
                asking.wait(1, round);
            }
            asking.turn.close();
        });
        drop(asking);
        echo.join().unwrap();
    }

    #[test]
    fn a_port_is_retired_when_its_leader_has_left() {
        let turn = ReceiverTurn::new(Waiter::new().unwrap(), PAUSE);
        let waiter = Waiter::new().unwrap();
        turn.open(1);
        let first = turn.lead(&waiter, true);
        assert_eq!(first, Some(1));
        std::thread::scope(|scope| {
            let retiring = scope.spawn(|| turn.retire());
            while turn.state.lock().has_session {
                std::thread::yield_now();
            }
            assert!(!retiring.is_finished());
            turn.leave(first);
            retiring.join().unwrap();
        });
        assert_eq!(turn.lead(&waiter, true), None, "what was received with is gone");
        turn.open(2);
        assert!(waiter.is_called());
        assert_eq!(turn.lead(&waiter, true), Some(2));
    }
}
