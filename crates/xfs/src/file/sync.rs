//! A volume made durable, and closed.

use super::access::store_accessed;
use super::close::trim_all;
use super::reclaim::free_orphans;
use crate::alloc;
use crate::error::Error;
use crate::log::SyncTicket;
use crate::volume::{Access, Volume};

impl Volume {
    /// Makes everything durable that was committed so far, and waits for it. On a volume that is
    /// not live, changes are written out as they are.
    ///
    /// # Errors
    /// The device failed: changes that were not durable before may be lost or not, and the volume
    /// is read-only from then on.
    pub fn sync(&self) -> Result<(), Error> {
        match (self.journal(), self.access()) {
            (Some(journal), _) => journal.sync(),
            (None, Access::ReadOnly) => Ok(()),
            (None, _) => {
                alloc::return_all(self)?;
                self.write_back()?;
                Ok(undercroft_block::flush(self.cache().device().as_ref())?)
            }
        }
    }

    /// Starts to make everything durable that was committed so far; the ticket tells when it is.
    /// Any number of tickets may wait: one write of the journal serves all.
    ///
    /// # Errors
    /// The volume is not live.
    pub fn force(&self) -> Result<SyncTicket, Error> {
        match self.journal() {
            Some(journal) => Ok(journal.force()),
            None => Err(Error::ReadOnly("it is not open for changes through its journal".into())),
        }
    }

    /// Puts these writes of file data before the next durable point: no checkpoint from now on,
    /// and no ticket drawn from now on, is complete before they are durable. One that fails makes
    /// the volume read-only as soon as it does.
    pub fn add_data(&self, writes: &undercroft_block::Batch) {
        if let Some(journal) = self.journal() {
            journal.add_data(writes);
        }
    }

    /// Makes a live volume what an unmount leaves, and goes on: data written back, everything in its
    /// place, nothing to replay. The next change of it ends that. What other threads change meanwhile
    /// may be part of it or not; files without a name stay while they are open. No transaction may be open
    /// in this thread.
    ///
    /// # Errors
    /// Data of a file could not be written; the device failed, and the volume is read-only.
    pub fn settle(&self) -> Result<(), Error> {
        let Some(journal) = self.journal() else { return Ok(()) };
        self.put_files_away()?;
        journal.settle(|| self.counters())
    }

    /// Writes back what files have in memory, and gives back what they have for writes to come.
    fn put_files_away(&self) -> Result<(), Error> {
        self.check_poison()?;
        self.files().write_back_all(self)?;
        trim_all(self)?;
        store_accessed(self)
    }

    /// Leaves a live volume as an unmount does: data written back, files without a name freed,
    /// everything in its place, nothing to replay. Changes of other threads are refused from the
    /// call on, and those that were accepted before are part of what it leaves. It can be read
    /// afterwards, not changed, and its device can be opened for changes anew. Tickets that wait are
    /// answered, and their callbacks have run, before it returns. No transaction may be open in this
    /// thread. Closing it again does nothing.
    ///
    /// # Errors
    /// Data of a file could not be written, then the volume is still open, and takes changes again;
    /// the device failed. The journal holds all changes that were durable before.
    pub fn close(&self) -> Result<(), Error> {
        let Some(journal) = self.journal() else { return Ok(()) };
        self.changes().close(|| {
            self.put_files_away()?;
            free_orphans(self)?;
            journal.close(|| self.counters())
        })?;
        self.release();
        // Without any lock: a callback may close the volume, too.
        journal.drain_answers();
        Ok(())
    }
}
