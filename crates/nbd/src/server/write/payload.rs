//! The payload of a write, on its way to memory.

use undercroft_block::Buffer;

use super::spliced::SplicedWrite;
use crate::protocol::Request;
use crate::server::connection::input::Input;

/// What of a payload comes to memory: all of it, or the rest of a spliced one.
pub(crate) struct Payload {
    pub(crate) write: Write,
    buffer: Buffer,
    filled: usize,
}

/// The write that it belongs to.
pub(crate) enum Write {
    /// It comes to memory as a whole. The thread of the connection does it if it is its `own`.
    Whole { request: Request, charge: usize, own: bool },
    /// What was not spliced.
    Rest(SplicedWrite),
}

impl Payload {
    /// Fills `buffer`, first with what is in `input`.
    pub(crate) fn new(write: Write, mut buffer: Buffer, input: &mut Input) -> Self {
        let filled = input.bytes().len().min(buffer.len());
        buffer[..filled].copy_from_slice(&input.bytes()[..filled]);
        input.consume(filled);
        Self { write, buffer, filled }
    }

    /// Fills `buffer` behind its first `filled` bytes, which have come.
    pub(crate) fn begun(write: Write, buffer: Buffer, filled: usize) -> Self {
        Self { write, buffer, filled }
    }

    /// Memory for what has not come.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Says that `count` bytes of the room were filled.
    pub(crate) fn fill(&mut self, count: usize) {
        self.filled = self.buffer.len().min(self.filled + count);
    }

    /// Whether all has come.
    pub(crate) fn is_here(&self) -> bool {
        self.filled == self.buffer.len()
    }

    /// The write, and what has come.
    pub(crate) fn into_parts(self) -> (Write, Buffer) {
        (self.write, self.buffer)
    }
}
