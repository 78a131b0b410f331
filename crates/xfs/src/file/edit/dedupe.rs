//! Sharing of ranges that hold the same bytes already.

use super::{CloneRange, FileEdit};
use crate::error::Error;
use crate::file::read;
use crate::inode::{Inode, file_locks};
use std::sync::Arc;

/// Bytes compared at a time.
const CHUNK_BYTES: usize = 256 << 10;

impl FileEdit<'_> {
    /// Shares the blocks of a range with `source`, or with another of this file, if both are the
    /// same; returns whether they are.
    pub(super) fn dedupe(
        mut self,
        source: Option<&Arc<Inode>>,
        range: &CloneRange,
    ) -> Result<bool, Error> {
        self.check_clone(source.map(|source| &**source), range)?;
        let (end, size) = (range.target + range.len, self.size());
        if end > size {
            let what = format!("the target has {size} bytes");
            return Err(self.invalid(&(range.target..end), &what));
        }
        if range.len == 0 {
            return Ok(true);
        }
        if !self.is_same(source, range)? {
            return Ok(false);
        }
        // No byte changes, so no time does.
        self.stamped = true;
        self.share(source, range)?;
        Ok(true)
    }

    fn is_same(&self, source: Option<&Arc<Inode>>, range: &CloneRange) -> Result<bool, Error> {
        let source = source.unwrap_or(&self.inode);
        let locks = file_locks(source);
        let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let mut done = 0;
        while done < range.len {
            let len = (range.len - done).min(CHUNK_BYTES as u64) as usize;
            let (ours, theirs) = (&mut ours[..len], &mut theirs[..len]);
            read::read(self.volume, &self.inode, &self.locks, range.target + done, ours)?;
            read::read(self.volume, source, &locks, range.source + done, theirs)?;
            if ours != theirs {
                return Ok(false);
            }
            done += len as u64;
        }
        Ok(true)
    }
}
