//! Sharing of what is the same already.

use super::{CloneRange, FileEdit};
use crate::error::Error;
use crate::inode::{InodeGuard, InodeState};
use crate::ops::read_at;

/// Bytes compared at a time.
const CHUNK_BYTES: usize = 256 << 10;

impl FileEdit<'_> {
    /// Shares the blocks of a range of this file and one of `source` (without `source`: of this
    /// file itself) if they hold the same bytes; whether they do. Sizes and times stay.
    ///
    /// # Errors
    /// As for [`clone_from`](Self::clone_from); the range must lie in both files.
    pub fn dedupe_from(
        &mut self,
        source: Option<&mut InodeGuard>,
        range: CloneRange,
    ) -> Result<bool, Error> {
        self.check_clone(source.as_deref(), &range)?;
        let end = range.target + range.len;
        if end > self.inode.core.size {
            let what = format!("the target has {} bytes", self.inode.core.size);
            return Err(self.invalid(&(range.target..end), &what));
        }
        if range.len == 0 {
            return Ok(true);
        }
        if !self.is_same(source.as_deref(), &range)? {
            return Ok(false);
        }
        // No byte changes, so no time does.
        self.stamped = true;
        self.share(source, &range)?;
        Ok(true)
    }

    fn is_same(&self, source: Option<&InodeGuard>, range: &CloneRange) -> Result<bool, Error> {
        let source: &InodeState = source.map_or(&**self.inode, |source| source);
        let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let mut done = 0;
        while done < range.len {
            let len = (range.len - done).min(CHUNK_BYTES as u64) as usize;
            let (ours, theirs) = (&mut ours[..len], &mut theirs[..len]);
            read_at(self.volume, self.inode, range.target + done, ours)?;
            read_at(self.volume, source, range.source + done, theirs)?;
            if ours != theirs {
                return Ok(false);
            }
            done += len as u64;
        }
        Ok(true)
    }
}
