//! Sharing of what is the same already.

use super::clone::Pair;
use super::{CloneRange, FileEdit};
use crate::error::Error;
use crate::format::Timestamp;
use crate::inode::Inode;
use crate::ops::read_at;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Bytes compared at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Shares the blocks of a range of the file `target` and one of `source` (perhaps the same file) if
/// they hold the same bytes; returns whether they do. Sizes and times stay.
///
/// # Errors
/// As for [`clone_range`](super::clone_range); the range must lie in both files.
pub fn dedupe_range(
    volume: &Volume,
    source: InodeNumber,
    target: InodeNumber,
    range: &CloneRange,
) -> Result<bool, Error> {
    let Pair { source, mut target, .. } =
        Pair::open(volume, (source, target), Timestamp::default())?;
    target.check_clone(source.as_deref(), range)?;
    let (end, size) = (range.target + range.len, target.size());
    if end > size {
        let what = format!("the target has {size} bytes");
        return Err(target.invalid(&(range.target..end), &what));
    }
    if range.len == 0 {
        return Ok(true);
    }
    if !target.is_same(source.as_deref(), range)? {
        return Ok(false);
    }
    // No byte changes, so no time does.
    target.stamped = true;
    target.share(source.as_ref(), range)?;
    Ok(true)
}

impl FileEdit<'_> {
    fn is_same(&self, source: Option<&Inode>, range: &CloneRange) -> Result<bool, Error> {
        let source = source.unwrap_or(&self.inode);
        let (mut ours, mut theirs) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        let mut done = 0;
        while done < range.len {
            let len = (range.len - done).min(CHUNK_BYTES as u64) as usize;
            let (ours, theirs) = (&mut ours[..len], &mut theirs[..len]);
            read_at(self.volume, &self.inode.read(), range.target + done, ours)?;
            read_at(self.volume, &source.read(), range.source + done, theirs)?;
            if ours != theirs {
                return Ok(false);
            }
            done += len as u64;
        }
        Ok(true)
    }
}
