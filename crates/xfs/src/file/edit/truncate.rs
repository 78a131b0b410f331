//! Setting the size of a file.

use super::FileEdit;
use crate::error::Error;
use crate::format::InodeFlags2;
use crate::units::FileBlock;

impl FileEdit<'_> {
    /// Gives the file the size `size`: data behind it is freed, new bytes read as zeros.
    ///
    /// The size is set first, then the blocks behind it are freed in steps: after a crash between
    /// them, the file has its new size and some blocks too many, which go with the file.
    ///
    /// The rest of its last block behind the end stays as it is: a crash that takes this back needs
    /// it. A later write or truncation that lets the file grow zeroes it, here and in Linux.
    ///
    /// # Errors
    /// The size is larger than the format allows; no space to copy a shared last block; a damaged
    /// structure; the device failed.
    pub(in crate::file) fn truncate(&mut self, size: u64) -> Result<(), Error> {
        self.check_end(size, 0)?;
        self.start();
        self.zero_behind_end(size)?;
        let shrinks = size < self.size();
        let end = FileBlock(self.geometry().blocks_for(size));
        let last = FileBlock(size >> self.geometry().block_log);
        let kept = if shrinks { self.extents()?.first_in(last, end) } else { None };
        let mut step = self.begin()?;
        kept.iter().for_each(|extent| self.protect(extent));
        step.inode.core.size = size;
        self.commit(step)?;
        self.unmap(end..FileBlock(u64::MAX))?;
        let sharing = InodeFlags2::REFLINK;
        let state = self.inode.read();
        let shares_nothing = state.data.is_empty() && state.core.flags2.contains(sharing);
        drop(state);
        if shares_nothing {
            let mut step = self.begin()?;
            step.inode.core.flags2.remove(sharing);
            self.commit(step)?;
        }
        Ok(())
    }
}
