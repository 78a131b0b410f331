//! The receiving end of one connection.

use std::io;
use std::sync::Arc;

use super::waiter::{Ended, Waiter};
use crate::client::flight::Flight;
use crate::client::session::answer::{Answer, Part};
use crate::client::session::channel;
use crate::client::session::handshake::Terms;
use crate::client::session::link::Link;

/// What the thread needs that receives from a connection.
pub(crate) struct Receiving {
    pub(crate) link: Arc<Link>,
    pub(crate) receiver: channel::Receiver,
    pub(crate) terms: Terms,
    /// Answered, and not handed in yet: together with what comes at the same time.
    pub(crate) ended: Vec<Ended>,
}

impl Receiving {
    pub(crate) fn new(link: &Arc<Link>, receiver: channel::Receiver, terms: Terms) -> Self {
        Self { link: Arc::clone(link), receiver, terms, ended: Vec::new() }
    }

    /// Takes what the answer brings. A read may have to wait for its data: what has ended before is
    /// told first.
    pub(crate) fn take(
        &mut self,
        answer: &Answer,
        flight: &mut Flight,
        waiter: &Arc<Waiter>,
        mine: &mut Vec<Ended>,
    ) -> io::Result<()> {
        let data = match answer.part {
            Part::Simple if flight.is_read() => Some(flight.range()),
            Part::Data { offset, length } => Some((offset, length)),
            Part::Hole { offset, length } => {
                flight.pieces(offset, length)?.iter_mut().for_each(|piece| piece.fill(0));
                None
            }
            Part::Error(error) => {
                flight.error = flight.error.or(Some(error));
                None
            }
            Part::Simple | Part::Nothing | Part::Status(_) => None,
        };
        if let Some((offset, length)) = data {
            if (self.receiver.held().len() as u64) < length {
                self.deliver(waiter, mine);
            }
            self.receiver.read_pieces(&mut flight.pieces(offset, length)?)?;
        }
        if answer.last && flight.error.is_none() && !flight.is_whole() {
            let what = "the server answered a read with too few bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }

    /// Gives what has ended to those who wait for it.
    pub(crate) fn deliver(&mut self, waiter: &Arc<Waiter>, mine: &mut Vec<Ended>) {
        for ended in self.ended.drain(..) {
            if Arc::ptr_eq(&ended.waiter, waiter) { mine.push(ended) } else { ended.deliver() }
        }
    }
}
