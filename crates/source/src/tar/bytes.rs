//! The bytes of an archive with their position.

use super::input::Input;
use crate::Chunk;
use std::io;

/// The rest of an archive.
pub(super) struct Bytes {
    input: Box<dyn Input>,
    /// Bytes that were read and not yet taken.
    window: Option<Chunk>,
    position: u64,
}

impl Bytes {
    pub(super) fn new(input: Box<dyn Input>) -> Self {
        Self { input, window: None, position: 0 }
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next bytes, at least one and at most `limit` (which is not 0); `None` at the end.
    pub(super) fn take(&mut self, limit: u64) -> io::Result<Option<Chunk>> {
        if self.window.as_ref().is_none_or(Chunk::is_empty) {
            self.window = self.input.next_chunk()?;
        }
        let Some(window) = &mut self.window else { return Ok(None) };
        let taken = window.take_front(usize::try_from(limit).unwrap_or(usize::MAX));
        self.position += taken.len() as u64;
        Ok(Some(taken))
    }

    /// Fills `target` as far as there are bytes; how many there were.
    pub(super) fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < target.len() {
            let Some(chunk) = self.take((target.len() - filled) as u64)? else { break };
            target[filled..filled + chunk.len()].copy_from_slice(chunk.as_slice());
            filled += chunk.len();
        }
        Ok(filled)
    }

    /// Leaves out the next `length` bytes, or as many as there are; how many there were.
    pub(super) fn skip(&mut self, length: u64) -> io::Result<u64> {
        let mut left = length;
        while left > 0 {
            if self.window.as_ref().is_none_or(Chunk::is_empty) {
                let skipped = self.input.skip(left)?;
                self.position += skipped;
                left -= skipped;
                if left == 0 {
                    break;
                }
            }
            let Some(chunk) = self.take(left)? else { break };
            left -= chunk.len() as u64;
        }
        Ok(length - left)
    }
}
