//! Long writes whose payload goes from the socket to the page cache of a file, with one copy less than by
//! memory.

use std::io;
use std::time::Duration;

use rustix::io::ioctl_fionread;
use undercroft_block::Plug;

use super::connection::{Connection, Left};
use super::end::End;
use super::long_write::LongWrite;
use super::payload::{Payload, Write};
use super::pipe::FilledPipe;
use crate::busy_poll::look_for;

/// Time in which a client that has sent a little of a part sends more.
const MOMENT: Duration = Duration::from_micros(50);

impl Connection<'_> {
    /// Moves what has come of `long` to the device, if that is enough.
    pub(super) fn take_spliced(&mut self, plug: &Plug, mut long: LongWrite) -> Result<Left, End> {
        self.state.arrived = 0;
        let here = self.arrived()?;
        let Some(length) = long.spliced_part(here) else {
            self.state.spliced = Some(long);
            return Ok(Left::Nothing);
        };
        // What came before goes before.
        self.own_writes.flush(plug);
        let (device, socket) = (&*self.executor.export.device, self.stream.socket());
        if let Err(pipe) = self.own_writes.measure(|| long.splice(device, socket, length)) {
            self.receive_in_memory(long, pipe)?;
        } else if long.part() > 0 {
            self.state.spliced = Some(long);
        } else {
            self.own_writes.learn(self.outbox.load.requests() == 0 && here == length);
        }
        Ok(Left::Maybe)
    }

    /// Has the next part of `long` come to memory: little has come that could be spliced, or the
    /// client has gone. What is in `pipe` is the beginning of it.
    fn receive_in_memory(&mut self, long: LongWrite, pipe: Option<FilledPipe>) -> Result<(), End> {
        let filled = pipe.as_ref().map_or(0, FilledPipe::len);
        let mut buffer = self.executor.buffer(long.part_with(filled));
        pipe.map_or(Ok(()), |pipe| pipe.read_to(&mut buffer))?;
        self.state.payload = Some(Payload::begun(Write::Long(long), buffer, filled));
        Ok(())
    }

    /// Whether the next part of the write whose payload is in the socket is there, or comes this moment.
    /// If only less than that has come, the write goes on in memory, where any number of bytes may come.
    ///
    /// A client that has to wake this thread may run on its processor, and what it sends is in the caches
    /// there. So nothing is gained by looking again and again before anything has come, unless the client
    /// has nothing to do but to send this write.
    pub(super) fn has_spliced_part(&mut self) -> Result<bool, End> {
        let Some(long) = self.state.spliced.take() else { return Ok(false) };
        let has_begun = self.arrived()? > 0;
        let is_there = (has_begun || self.own_writes.come_alone()) && self.comes_soon(&long)?;
        if is_there || !has_begun {
            self.state.spliced = Some(long);
            return Ok(is_there);
        }
        self.receive_in_memory(long, None).map(|()| false)
    }

    /// Whether the next part of `long` comes this moment.
    fn comes_soon(&self, long: &LongWrite) -> Result<bool, End> {
        look_for(MOMENT, || Ok(long.spliced_part(self.arrived()?).is_some()))
    }

    /// Looks at what has come of a write whose payload is in the socket, which is readable: nothing is the
    /// end.
    pub(super) fn see_spliced(&mut self) -> io::Result<()> {
        if self.arrived()? == 0 {
            self.state.ending = Some(End::Client);
        }
        Ok(())
    }

    /// Bytes in the socket.
    pub(super) fn arrived(&self) -> io::Result<usize> {
        let bytes = ioctl_fionread(self.stream.socket())?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}
