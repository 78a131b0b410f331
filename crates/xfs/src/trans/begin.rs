//! Transactions begun.

use super::Transaction;
use crate::cache::wait_from_here;
use crate::changes::Change;
use crate::error::Error;
use crate::log::Work;
use crate::volume::Volume;

impl Volume {
    /// Starts a transaction.
    ///
    /// On a live volume this may wait for the journal, which waits for the transactions that run.
    /// So a thread must neither hold the lock of an inode nor have another transaction open when it
    /// calls this: it begins first, then locks inodes, and gives up all of it before it begins the
    /// next one.
    ///
    /// # Errors
    /// The volume is read-only, or an earlier failure made it so; it was closed.
    pub fn begin(&self) -> Result<Transaction<'_>, Error> {
        self.begin_sized(self.log_space().longest)
    }

    /// Starts a transaction for work whose share of the journal is known. It may take more, up to
    /// the longest chain of a kernel: there is room for one that does.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_for(&self, work: Work) -> Result<Transaction<'_>, Error> {
        let change = self.changes().begin()?;
        self.begin_within(self.log_space().of(work), self.log_space().longest, Some(change))
    }

    /// Starts a transaction for something that was accepted before, or that is a step of a change
    /// under way: also while the volume is being closed, until its journal is.
    ///
    /// # Errors
    /// As [`begin_sized`](Self::begin_sized).
    pub(crate) fn begin_accepted(&self, log_bytes: usize) -> Result<Transaction<'_>, Error> {
        self.begin_within(log_bytes, log_bytes, None)
    }

    /// Starts a transaction that takes at most `log_bytes` bytes of the journal: for operations
    /// that may need more than the largest one of a kernel.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); or the journal never has that much room.
    pub fn begin_sized(&self, log_bytes: usize) -> Result<Transaction<'_>, Error> {
        let change = self.changes().begin()?;
        self.begin_within(log_bytes, log_bytes, Some(change))
    }

    fn begin_within<'v>(
        &'v self,
        bytes: usize,
        most: usize,
        change: Option<Change<'v>>,
    ) -> Result<Transaction<'v>, Error> {
        self.check_writable()?;
        wait_from_here();
        self.count_free_space()?;
        let permit = self.journal().map(|journal| journal.enter(bytes, most)).transpose()?;
        Ok(Transaction::new(self, permit, change))
    }
}
