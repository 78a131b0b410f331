//! The payload of a write, on its way.

use undercroft_block::Buffer;

use super::input::Input;
use super::long_write::LongWrite;
use crate::protocol::Request;

/// What of a payload is received next: all of it, or a part.
pub(super) struct Payload {
    pub(super) write: Write,
    buffer: Buffer,
    filled: usize,
}

/// The write that it belongs to.
pub(super) enum Write {
    /// Submitted when its payload has come; `own` if the thread of the connection does it.
    Whole { request: Request, charge: usize, own: bool },
    /// A part is submitted when it has come.
    Long(LongWrite),
}

impl Write {
    /// Whether nothing of it comes behind what is received next.
    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Whole { .. } => true,
            Self::Long(long) => long.is_last(),
        }
    }
}

impl Payload {
    /// Fills `buffer`, first with what is in `input`.
    pub(super) fn new(write: Write, mut buffer: Buffer, input: &mut Input) -> Self {
        let filled = input.bytes().len().min(buffer.len());
        buffer[..filled].copy_from_slice(&input.bytes()[..filled]);
        input.consume(filled);
        Self { write, buffer, filled }
    }

    /// Fills `buffer` behind its first `filled` bytes, which have come.
    pub(super) fn begun(write: Write, buffer: Buffer, filled: usize) -> Self {
        Self { write, buffer, filled }
    }

    /// Memory for what has not come.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Says that `count` bytes of the room were filled.
    pub(super) fn fill(&mut self, count: usize) {
        self.filled = self.buffer.len().min(self.filled + count);
    }

    /// Whether all has come.
    pub(super) fn is_here(&self) -> bool {
        self.filled == self.buffer.len()
    }

    /// The write, and what has come.
    pub(super) fn into_parts(self) -> (Write, Buffer) {
        (self.write, self.buffer)
    }
}
