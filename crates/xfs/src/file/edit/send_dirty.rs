//! Dirty data of a file on its way to its blocks.

use super::FileEdit;
use super::data::Source;
use crate::error::Error;
use crate::file::write_back_end::{fail, next_number, release};
use crate::inode::{DataLock, Inode};
use crate::volume::Volume;
use std::sync::Arc;
use undercroft_block::Batch;

impl FileEdit<'_> {
    /// Sends the dirty data of a file, whose data the caller has locked, to the device: for
    /// operations that work on the mapping.
    ///
    /// # Errors
    /// What could not be sent stays dirty, or is lost.
    pub(super) fn send_dirty(
        volume: &Volume,
        inode: &Arc<Inode>,
        lock: DataLock,
    ) -> Result<DataLock, Error> {
        if inode.read().memory.dirty.is_none() {
            return Ok(lock);
        }
        let number = next_number();
        let mut edit = FileEdit::plugged(volume, Arc::clone(inode), lock, Batch::new())?;
        let sent = edit.write_back(number, true);
        let lock = edit.into_lock();
        release(inode, number);
        sent.inspect_err(|error| drop(fail(volume, inode, error)))?;
        Ok(lock)
    }

    /// Sends all dirty data that was not sent yet, as the write-back `number`, and commits the new
    /// mappings, the size, and with `times` the times. Where all of it goes to blocks that the file
    /// has already, and the times can wait, there is nothing to commit.
    pub(in crate::file) fn write_back(&mut self, number: u64, times: bool) -> Result<(), Error> {
        self.start();
        let runs = match &self.inode.read().memory.dirty {
            Some(dirty) => dirty.runs(),
            None => return Ok(()),
        };
        let block_log = self.geometry().block_log;
        for run in &runs {
            let bytes = run.blocks.start << block_log..run.blocks.end << block_log;
            self.put(bytes, Source::Run(run))?;
            if let Some(dirty) = &mut self.inode.write().memory.dirty {
                dirty.set_sent(run, number);
            }
        }
        let (size, stored_size, unstamped) = {
            let state = self.inode.read();
            let Some(dirty) = &state.memory.dirty else { return Ok(()) };
            (state.core.size, dirty.stored_size, dirty.unstamped)
        };
        if stored_size < size || (times && unstamped && !self.stamped) {
            let mut step = self.begin()?;
            self.before(&mut step)?;
            step.inode.grow_stored_size(size);
            self.commit(step)?;
        } else if !runs.is_empty() {
            self.before_next_checkpoint()?;
        }
        if self.stamped
            && let Some(dirty) = &mut self.inode.write().memory.dirty
        {
            dirty.unstamped = false;
        }
        Ok(())
    }
}
