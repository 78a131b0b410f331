//! Writes, of which there are two ways: by [memory](payload), and [spliced](spliced) from the socket to the
//! page cache. The connection's thread does the second and the short ones of the first [itself](own).

pub(crate) mod own;
pub(crate) mod payload;
pub(crate) mod spliced;

use std::io;
use std::time::Duration;

use rustix::io::ioctl_fionread;
use undercroft_block::Plug;

use self::own::LONG;
use self::payload::{Payload, Write};
use self::spliced::SplicedWrite;
use super::connection::busy_poll::look_for;
use super::connection::{Connection, End, Left};
use super::pipe::FilledPipe;
use super::request::aligned_range::OWN;
use crate::protocol::Request;

/// Time in which a client that has sent a little of a part sends more.
const MOMENT: Duration = Duration::from_micros(50);

impl Connection<'_> {
    /// Begins the write `request`, which was checked, and takes what is there of its payload.
    pub(super) fn begin_write(&mut self, request: Request, charge: usize) {
        let is_own = self.own_writes.may_be(&request);
        let spliced = is_own.then(|| self.executor.spliced_write(&request, charge)).flatten();
        if spliced.is_some() {
            // What is read with a header is in memory: nothing behind the header of the next one.
            self.state.ahead = Some(self.executor.dialect.request_length());
            if self.input.bytes().is_empty() {
                self.state.spliced = spliced;
                return;
            }
        }
        let own = is_own && request.length < LONG;
        // Checked: at most the longest payload.
        let buffer = self.executor.buffer(request.length as usize);
        let write = Write::Whole { request, charge, own };
        self.state.payload = Some(Payload::new(write, buffer, &mut self.input));
    }

    /// Submits what `payload` is of, if it has come.
    pub(super) fn take_payload(&mut self, plug: &Plug, payload: Payload) -> Left {
        if !payload.is_here() {
            self.state.payload = Some(payload);
            return Left::Nothing;
        }
        let (write, data) = payload.into_parts();
        match write {
            Write::Whole { request, charge, own } => {
                if own {
                    self.own_writes.plug();
                }
                self.executor.run(plug, &request, Some(data), charge, own);
            }
            Write::Rest(write) => {
                // Others would wait for the copy of a longer one.
                let own = data.len() as u64 <= OWN;
                if own {
                    self.own_writes.plug();
                }
                write.submit(plug, data, own);
            }
        }
        Left::Maybe
    }

    /// Moves what has come of `write` to the device, if that is enough.
    pub(super) fn take_spliced(
        &mut self,
        plug: &Plug,
        mut write: SplicedWrite,
    ) -> Result<Left, End> {
        let Some(length) = write.part(self.arrived()?) else {
            self.state.spliced = Some(write);
            return Ok(Left::Nothing);
        };
        // What came before goes before.
        self.own_writes.flush(plug);
        let (device, socket) = (&*self.executor.export.device, self.stream.socket());
        if let Err(pipe) = self.own_writes.measure(|| write.splice(device, socket, length)) {
            self.receive_rest(write, pipe)?;
        } else if write.rest() > 0 {
            self.state.spliced = Some(write);
        } else {
            write.answer();
        }
        Ok(Left::Maybe)
    }

    /// Has the rest of `write` come to memory: the file takes no pages now, or little has come that could be
    /// spliced, or the client has gone. What is in `pipe` is the beginning of it.
    fn receive_rest(&mut self, write: SplicedWrite, pipe: Option<FilledPipe>) -> Result<(), End> {
        let filled = pipe.as_ref().map_or(0, FilledPipe::len);
        let mut buffer = self.executor.buffer(write.rest());
        pipe.map_or(Ok(()), |pipe| pipe.read_to(&mut buffer))?;
        self.state.payload = Some(Payload::begun(Write::Rest(write), buffer, filled));
        Ok(())
    }

    /// Looks for a moment at what comes of the write whose payload is in the socket; whether the next part is
    /// there, or the rest comes to memory, since less than a part has come.
    ///
    /// A client that has to wake this thread may run on its processor, and what it sends is in the caches
    /// there. So nothing is gained by looking before anything has come, unless the client has nothing to do
    /// but to send this write.
    pub(super) fn sees_spliced(&mut self) -> Result<bool, End> {
        let Some(write) = self.state.spliced.take() else { return Ok(false) };
        let has_begun = self.arrived()? > 0;
        let comes = || Ok::<_, io::Error>(write.part(self.arrived()?).is_some());
        let is_there = (has_begun || self.is_alone()) && look_for(MOMENT, comes)?;
        if has_begun && !is_there {
            self.receive_rest(write, None)?;
        } else {
            self.state.spliced = Some(write);
        }
        Ok(has_begun || is_there)
    }

    /// Looks at the socket with the payload of a write, which is readable: nothing in it is the end.
    pub(super) fn ends_in_payload(&self) -> io::Result<bool> {
        Ok(self.arrived()? == 0)
    }

    /// Bytes in the socket.
    fn arrived(&self) -> io::Result<usize> {
        let bytes = ioctl_fionread(self.stream.socket())?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}
