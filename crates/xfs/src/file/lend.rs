//! Data of a file for a reader that only passes it on: what was read ahead is not copied.

use super::OpenFile;
use crate::error::Error;
use std::ops::Range;

/// Most bytes that are lent at a time: those of a piece that is read ahead.
const LENT_MAX: usize = 1 << 20;

impl OpenFile {
    /// Hands the front of a range of the file to `take`: as many bytes as lie together in memory, at
    /// most 1 MiB; none at the end of the file. They lie where they were read ahead, or in `memory`,
    /// which grows to the bytes of a call. No lock is held while `take` has them.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn lend<T>(
        &self,
        range: Range<u64>,
        memory: &mut Vec<u8>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, Error> {
        let wanted = range.end.saturating_sub(range.start);
        let len = usize::try_from(wanted).unwrap_or(LENT_MAX).min(LENT_MAX);
        if let Some(loan) = self.lent(range.start, len)? {
            self.follow(range.start..range.start + loan.len() as u64);
            return Ok(take(loan.bytes()));
        }
        if memory.len() < len {
            memory.resize(len, 0);
        }
        let len = self.read(range.start, &mut memory[..len])?;
        Ok(take(&memory[..len]))
    }
}
