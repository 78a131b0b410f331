//! Setting the size of a file.

use super::FileEdit;
use super::data::Source;
use crate::error::Error;
use crate::format::InodeFlags2;
use crate::units::FileBlock;

impl FileEdit<'_> {
    /// Gives the file the size `size`: what is behind it goes, what is new reads as zeros.
    ///
    /// The size is set first, then the blocks behind it are freed in steps: after a crash between
    /// them, the file has its new size and some blocks too many, which go with the file.
    ///
    /// # Errors
    /// The size is larger than the format allows; no space to copy a shared last block; a damaged
    /// structure; the device failed.
    pub(in crate::file) fn truncate(&mut self, size: u64) -> Result<(), Error> {
        self.check_end(size, 0)?;
        self.start();
        self.zero_behind_end(size)?;
        let shrinks = size < self.size();
        let mut step = self.begin()?;
        step.inode.core.size = size;
        self.commit(step)?;
        let end = FileBlock(self.geometry().blocks_for(size));
        self.unmap(end..FileBlock(u64::MAX))?;
        if shrinks {
            self.clear_tail(end)?;
        }
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

    /// Zeroes the rest of the last block behind the end of the file.
    ///
    /// Whoever lets the file grow again does that, too: so a full volume, where a shared block
    /// cannot be copied, is no reason to fail after the file has become shorter.
    fn clear_tail(&mut self, end: FileBlock) -> Result<(), Error> {
        match self.put(self.size()..self.byte(end), Source::Zeroes) {
            Err(Error::NoSpace { .. }) => Ok(()),
            other => other,
        }
    }
}
