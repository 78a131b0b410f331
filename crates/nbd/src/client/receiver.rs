//! The receiving end of one connection.

use std::io;
use std::sync::Arc;

use super::answer::{Answer, Part};
use super::channel;
use super::flight::Flight;
use super::handshake::Terms;
use super::link::Link;
use super::seat::{Ended, Seat};

/// What the thread needs that receives from a connection.
pub(super) struct Receiving {
    pub(super) link: Arc<Link>,
    pub(super) receiver: channel::Receiver,
    pub(super) terms: Terms,
    /// Answered, and not handed in yet: together with what comes at the same time.
    pub(super) ended: Vec<Ended>,
}

impl Receiving {
    pub(super) fn new(link: &Arc<Link>, receiver: channel::Receiver, terms: Terms) -> Self {
        Self { link: Arc::clone(link), receiver, terms, ended: Vec::new() }
    }

    /// Takes what the answer brings. A read may have to wait for its data: what has ended before is
    /// told first.
    pub(super) fn take(
        &mut self,
        answer: &Answer,
        flight: &mut Flight,
        seat: &Arc<Seat>,
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
                self.deliver(seat, mine);
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
    pub(super) fn deliver(&mut self, seat: &Arc<Seat>, mine: &mut Vec<Ended>) {
        for ended in self.ended.drain(..) {
            if Arc::ptr_eq(&ended.seat, seat) { mine.push(ended) } else { ended.deliver() }
        }
    }
}
