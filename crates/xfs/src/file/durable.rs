//! Making an open file durable.

use super::OpenFile;
use crate::error::Error;
use crate::inode::SyncScope;
use crate::log::{Refusal, SyncTicket};
use crate::volume::Volume;
use smallvec::smallvec;
use std::sync::Arc;

impl OpenFile {
    /// Starts to make the file durable, data and inode, as it is now; and with it every name and
    /// every other change that was committed before, so the directory of a new file needs no fsync
    /// of its own. Later writes may become durable with it or not. Returns at once; the ticket
    /// tells when it is done. Any number of tickets may wait; a dropped one is cancelled, which
    /// cancels nothing but the report. An O_SYNC write is a write and this.
    ///
    /// On a volume that is not open for changes there is nothing to be made durable, and the ticket
    /// says so.
    pub fn fsync(&self) -> SyncTicket {
        self.ticket(SyncScope::All)
    }

    /// As [`fsync`](Self::fsync), without times that are not needed to read the data. An O_DSYNC
    /// write is a write and this.
    pub fn fdatasync(&self) -> SyncTicket {
        self.ticket(SyncScope::Data)
    }

    /// Makes the file durable, as [`fsync`](Self::fsync) does, in this thread. Of several threads
    /// that wait, one does the work for all.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fsync_and_wait(&self) -> Result<(), Error> {
        self.write_back_and_wait(SyncScope::All)
    }

    /// As [`fsync_and_wait`](Self::fsync_and_wait), for data.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn fdatasync_and_wait(&self) -> Result<(), Error> {
        self.write_back_and_wait(SyncScope::Data)
    }

    /// As [`fdatasync`](Self::fdatasync), for a server that keeps the file open for others: losses
    /// of before stay, for the one who asks next ([`has_untold_loss`](Self::has_untold_loss)).
    pub fn store_data(&self) -> SyncTicket {
        self.store(SyncScope::Data)
    }

    /// Whether data of the file was lost that the next [`fsync`](Self::fsync) of this opening tells of.
    #[must_use]
    pub fn has_untold_loss(&self) -> bool {
        self.inode.read().memory.losses.are_untold(&self.known_losses)
    }

    fn ticket(&self, extent: SyncScope) -> SyncTicket {
        match (self.volume.journal(), self.loss()) {
            (Some(journal), Some(what)) => journal.refused(Refusal::File(self.number(), what)),
            _ => self.store(extent),
        }
    }

    fn store(&self, extent: SyncScope) -> SyncTicket {
        let Some(journal) = self.volume.journal() else {
            return SyncTicket::refused("it is not open for changes through its journal");
        };
        if self.inode.read().memory.dirty.is_none() {
            // All of it was committed.
            return journal.force();
        }
        let (ticket, unsequenced) = journal.draw_unsequenced();
        self.volume.files().want(smallvec![(Arc::clone(&self.inode), extent)], unsequenced);
        journal.want_write_back();
        ticket
    }

    /// Losses of the file that this opening was not told of.
    fn loss(&self) -> Option<Arc<str>> {
        self.has_untold_loss().then(|| self.inode.write().memory.losses.tell(&self.known_losses))?
    }

    fn write_back_and_wait(&self, extent: SyncScope) -> Result<(), Error> {
        self.volume.files().write_back_one(&self.volume, &self.inode, extent)?;
        if let Some(what) = self.loss() {
            return Err(Error::NotWritten { inode: self.number(), what: what.to_string() });
        }
        self.volume.sync()
    }
}

impl Volume {
    /// Starts to make everything durable that was written or changed so far, in all files; the
    /// ticket tells when it is. Any number of tickets may wait: one write of the journal serves
    /// all.
    pub fn sync_all(&self) -> SyncTicket {
        let Some(journal) = self.journal() else {
            return SyncTicket::refused("it is not open for changes through its journal");
        };
        let files = self.files().dirty();
        if files.is_empty() {
            return journal.force_or_refuse();
        }
        let (ticket, unsequenced) = journal.draw_unsequenced();
        self.files().want(files, unsequenced);
        journal.want_write_back();
        ticket
    }

    /// As [`sync_all`](Self::sync_all), in this thread.
    ///
    /// # Errors
    /// As the ticket would say.
    pub fn sync_all_and_wait(&self) -> Result<(), Error> {
        self.files().write_back_all(self)?;
        self.sync()
    }
}
