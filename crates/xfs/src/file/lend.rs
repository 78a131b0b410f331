//! Data of a file for a reader that only passes it on: what was read ahead is not copied.

use super::OpenFile;
use crate::error::Error;
use std::ops::Range;

/// Most bytes that are lent at a time: those of a piece that is read ahead.
const LENT_MAX: usize = 1 << 20;

impl OpenFile {
    /// Hands a range of the file to `take` in pieces of at most 1 MiB, each with its offset; returns
    /// how many bytes that were: fewer at the end of the file. They lie where they were read ahead, or
    /// in `memory`, which grows to the bytes of a piece. No lock is held while `take` has them; its
    /// error ends the work.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn lend<E>(
        &self,
        range: Range<u64>,
        memory: &mut Vec<u8>,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<Result<u64, E>, Error> {
        let mut at = range.start;
        while at < range.end {
            let len = usize::try_from(range.end - at).unwrap_or(LENT_MAX).min(LENT_MAX);
            let loan = self.lent(at, len)?;
            let bytes = if let Some(loan) = &loan {
                self.follow(at..at + loan.len() as u64);
                loan.bytes()
            } else {
                if memory.len() < len {
                    memory.resize(len, 0);
                }
                let len = self.read(at, &mut memory[..len])?;
                &memory[..len]
            };
            if bytes.is_empty() {
                break;
            }
            if let Err(error) = take(at, bytes) {
                return Ok(Err(error));
            }
            at += bytes.len() as u64;
        }
        Ok(Ok(at - range.start))
    }
}
