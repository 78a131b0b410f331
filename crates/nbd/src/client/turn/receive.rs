//! Receiving the answers of one connection, by the thread that [leads](crate::client::turn).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::PollFlags;

use super::ReceiverTurn;
use super::receiver::Receiving;
use super::waiter::{Ended, Waiter};
use crate::client::session::answer::{self, SHORTEST};
use crate::client::state::{Over, Shared};

/// The time of a leader, which ends in a panic, too: others wait for that.
struct Leading<'p> {
    turn: &'p ReceiverTurn<Receiving>,
    /// What may go on.
    rest: Option<Receiving>,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.turn.leave(self.rest.take());
    }
}

/// Why nothing more can be received.
pub(crate) enum Stop {
    /// The session has ended.
    Over,
    /// The connection is of no use any more.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Over> for Stop {
    fn from(Over: Over) -> Self {
        Self::Over
    }
}

impl Shared {
    /// The thread at `waiter` receives in its turn, or waits for the one that does: until some of its
    /// own requests have ended, which are returned, or it was called for another reason. Without
    /// `waits` it takes what there is.
    pub(crate) fn receive_in_turn(
        &self,
        connection: usize,
        waiter: &Arc<Waiter>,
        waits: bool,
    ) -> Vec<Ended> {
        let turn = &self.turns[connection];
        let mut mine = waiter.take();
        let waits = waits && mine.is_empty() && !waiter.is_called();
        let led = turn.lead(waiter, waits).map(|receiving| {
            let mut leading = Leading { turn, rest: None };
            leading.rest = self.receive(receiving, waiter, waits, &mut mine);
        });
        if led.is_none() && waits {
            // An error, or a call, keeps it from sleeping: the caller looks, and comes again.
            let _ = waiter.sleep(None);
        }
        waiter.hear();
        mine.append(&mut waiter.take());
        if led.is_none() && waits {
            turn.depart(waiter, mine.is_empty());
        }
        mine
    }

    /// The life of the thread that receives in its turn when no other thread waits.
    pub(crate) fn watch(&self, connection: usize, waiter: &Arc<Waiter>) {
        let turn = &self.turns[connection];
        while let Some(receiving) = turn.watch() {
            let mut leading = Leading { turn, rest: None };
            // Nothing of what ends is its own.
            leading.rest = self.receive(receiving, waiter, true, &mut Vec::new());
        }
    }

    /// Receives; gives back what may go on.
    fn receive(
        &self,
        mut receiving: Receiving,
        waiter: &Arc<Waiter>,
        waits: bool,
        mine: &mut Vec<Ended>,
    ) -> Option<Receiving> {
        let result = receiving.run(self, waiter, waits, mine);
        receiving.deliver(waiter, mine);
        match result {
            Ok(()) => Some(receiving),
            Err(Stop::Over) => None,
            Err(Stop::Failed(error)) => {
                self.broke(receiving.link.epoch, &error);
                None
            }
        }
    }
}

impl Receiving {
    fn run(
        &mut self,
        shared: &Shared,
        waiter: &Arc<Waiter>,
        waits: bool,
        mine: &mut Vec<Ended>,
    ) -> Result<(), Stop> {
        let mut look = !waits || self.receiver.may_hide_bytes();
        loop {
            while self.receiver.held().len() >= SHORTEST {
                self.one(shared, waiter, mine)?;
            }
            self.deliver(waiter, mine);
            if !mine.is_empty() || waiter.is_called() {
                return Ok(());
            }
            let room_wanted = self.link.has_rest();
            if look && self.receiver.look()? {
                continue;
            }
            if !waits {
                if room_wanted {
                    self.link.go_on()?;
                }
                return Ok(());
            }
            let room = if room_wanted { PollFlags::OUT } else { PollFlags::empty() };
            let woken = waiter.sleep(Some((self.link.socket().as_fd(), PollFlags::IN | room)))?;
            if woken.writable {
                self.link.go_on()?;
            }
            look = woken.readable || self.receiver.may_hide_bytes();
        }
    }

    /// Takes one answer or part of one, whose beginning has come.
    fn one(
        &mut self,
        shared: &Shared,
        waiter: &Arc<Waiter>,
        mine: &mut Vec<Ended>,
    ) -> Result<(), Stop> {
        let answer = answer::next(&mut self.receiver, &self.terms)?;
        let epoch = self.link.epoch;
        let Some(mut flight) = shared.take(epoch, answer.cookie)? else {
            let what = "the server answered what was not asked";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
        };
        if let Err(error) = self.take(&answer, &mut flight, waiter, mine) {
            shared.put_back(answer.cookie, flight);
            return Err(error.into());
        }
        if answer.last {
            shared.answered(answer.cookie, flight, epoch, &mut self.ended);
        } else {
            shared.put_back(answer.cookie, flight);
        }
        Ok(())
    }
}
