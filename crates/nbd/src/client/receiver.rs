//! The thread that receives the answers of one connection.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::answer::{self, Answer, Part, SHORTEST};
use super::channel;
use super::flight::{Ended, Flight};
use super::handshake::Terms;
use super::state::{Over, Shared};
use super::threads;

/// Starts it, for a connection of the session `epoch`.
pub(super) fn start(
    shared: &Arc<Shared>,
    epoch: u64,
    receiver: channel::Receiver,
    terms: Terms,
) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let mut receiving = Receiving { shared, epoch, receiver, terms, ended: Vec::new() };
    threads::spawn("nbd-receiver", move || {
        let result = receiving.run();
        receiving.deliver();
        if let Err(Stop::Failed(error)) = result {
            receiving.shared.broke(epoch, &error);
        }
    })
}

struct Receiving {
    shared: Arc<Shared>,
    epoch: u64,
    receiver: channel::Receiver,
    terms: Terms,
    /// Answered, and not handed in yet: together with what comes at the same time.
    ended: Vec<Ended>,
}

enum Stop {
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

impl Receiving {
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            if !channel::has(&self.receiver, SHORTEST) {
                self.deliver();
            }
            let answer = answer::next(&mut self.receiver, &self.terms)?;
            let Some(mut flight) = self.shared.take(self.epoch, answer.cookie)? else {
                let what = "the server answered what was not asked";
                return Err(io::Error::new(io::ErrorKind::InvalidData, what).into());
            };
            if let Err(error) = self.receive(&answer, &mut flight) {
                self.shared.put_back(answer.cookie, flight);
                return Err(error.into());
            }
            if answer.last {
                self.shared.answered(answer.cookie, flight, self.epoch, &mut self.ended);
            } else {
                self.shared.put_back(answer.cookie, flight);
            }
        }
    }

    /// Takes what the answer brings. A read may have to wait for its data: what has ended before is
    /// told first.
    fn receive(&mut self, answer: &Answer, flight: &mut Flight) -> io::Result<()> {
        let data = match answer.part {
            Part::Simple if flight.is_read() => Some(flight.range()),
            Part::Data { offset, length } => Some((offset, length)),
            Part::Hole { offset, length } => {
                flight.fill(offset, length, |piece| {
                    piece.fill(0);
                    Ok(())
                })?;
                None
            }
            Part::Error(error) => {
                flight.error = flight.error.or(Some(error));
                None
            }
            Part::Simple | Part::Nothing | Part::Status(_) => None,
        };
        if let Some((offset, length)) = data {
            if self.receiver.buffer().len() as u64 <= length {
                self.deliver();
            }
            let receiver = &mut self.receiver;
            flight.fill(offset, length, |piece| receiver.read_exact(piece))?;
        }
        if answer.last && flight.error.is_none() && !flight.is_whole() {
            let what = "the server answered a read with too few bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }

    fn deliver(&mut self) {
        if !self.ended.is_empty() {
            self.shared.answer(std::mem::take(&mut self.ended));
        }
    }
}
