//! Data of a file that is on its way ahead of its reader.
//!
//! A reader that goes on where it ended has the data behind it read ahead (`crate::read_ahead`), and
//! [`OpenFile::will_need`] does the same for any range. Pieces lie in memory of the volume, which
//! has a bound: without room nothing is read ahead. It is done only where
//! [it is worth it](crate::read_ahead::ReadAhead::is_worth_it): a copy out of the page cache costs as much ahead
//! as in time.
//!
//! On a volume open for change a piece holds the data of the file as it was when its read was
//! submitted; a write submitted later comes behind it. Each change of the file's data on the device
//! or of its mapping has the lock of its data, and makes a new
//! [version](crate::inode::FileLocks::stable_version): pieces of an older one are dropped. What is
//! dirty in memory is not asked for here.
//!
//! Errors show when the data is asked for, which reads it again.

use super::OpenFile;
use super::kind::check_kind;
use super::stored_parts::stored_parts;
use crate::error::Error;
use crate::read_ahead::{Batch, Loan, Pieces, ReadPattern};
use std::ops::Range;
use std::sync::Arc;

impl OpenFile {
    /// Says in which order the file is going to be read through this opening of it.
    pub fn expect_reads(&self, pattern: ReadPattern) {
        self.ahead().set_pattern(pattern);
    }

    /// Says that this range of the file will be read soon: it is on its way then, as far as there
    /// is memory for that. Returns at once; errors show when it is read.
    ///
    /// For devices that answer at once it does nothing.
    pub fn will_need(&self, range: Range<u64>) {
        Self::will_need_all([(self, range)]);
    }

    /// As [`will_need`](Self::will_need), of several files together: what lies side by side on the
    /// device is read at once.
    pub fn will_need_all<'f>(reads: impl IntoIterator<Item = (&'f Self, Range<u64>)>) {
        let mut batch: Option<Batch<'f>> = None;
        for (file, range) in
            reads.into_iter().filter(|(file, _)| file.volume.cache().ahead().is_worth_it())
        {
            file.ahead().begin(&range);
            if let Some(other) = batch.take_if(|batch| !batch.is_of(file.volume.cache().ahead())) {
                other.submit();
            }
            let batch = batch.get_or_insert_with(|| file.batch());
            file.begin_ahead(range, batch);
        }
        if let Some(batch) = batch {
            batch.submit();
        }
    }

    /// Says that this range of the file will not be read soon: memory that holds it is let go.
    pub fn will_not_need(&self, range: Range<u64>) {
        if let Some(ahead) = self.ahead.get() {
            ahead.keep(|piece| piece.range.end <= range.start || range.end <= piece.range.start);
        }
    }

    /// Has all of a range that is to be read now on its way together, as far as there is memory.
    pub(super) fn will_read(&self, range: Range<u64>) {
        if self.volume.cache().ahead().is_worth_it() {
            let mut batch = self.batch();
            for missing in self.ahead().missing(range) {
                self.begin_ahead(missing, &mut batch);
            }
            batch.submit();
        }
    }

    /// Notes a read, and begins to read what comes next.
    pub(super) fn follow(&self, range: Range<u64>) {
        if self.volume.cache().ahead().is_worth_it()
            && let Some(version) = self.locks.stable_version()
            && let Some(next) = self.ahead().follow(range, self.size(), version)
        {
            let mut batch = self.batch();
            self.begin_ahead(next, &mut batch);
            batch.submit();
        }
    }

    /// Bytes of the file from the byte `at` on that were read ahead, at most `len`; `None` if there
    /// are none, or if others may lie over them in memory.
    pub(super) fn lent(&self, at: u64, len: usize) -> Result<Option<Loan>, Error> {
        let Some(ahead) = self.ahead.get() else { return Ok(None) };
        {
            let state = self.inode.read();
            check_kind(&self.volume, &state)?;
            // What is dirty lies over what is on the device.
            if state.memory.dirty.is_some() || state.core.size <= at {
                return Ok(None);
            }
        }
        let version = self.locks.stable_version();
        let loan = ahead.lend(version, at, len);
        if let Some(loan) = &loan {
            self.volume.cache().ahead().files().count_used(loan.len());
        }
        Ok(loan)
    }

    fn ahead(&self) -> &Arc<Pieces> {
        self.ahead.get_or_init(|| {
            let pieces = Arc::new(Pieces::default());
            self.volume.cache().ahead().files().enlist(Arc::downgrade(&pieces));
            pieces
        })
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(self.volume.cache().ahead(), self.volume.geometry().sector_size())
    }

    fn begin_ahead(&self, range: Range<u64>, batch: &mut Batch<'_>) {
        // Before the mapping is looked at: a change after this makes the pieces too old.
        let Some(version) = self.locks.stable_version() else { return };
        let parts = stored_parts(&self.volume, &self.inode.read(), range);
        // An error shows when the range is read.
        for (range, part) in parts.unwrap_or_default() {
            batch.add(self.ahead(), range, (part.sector, part.skipped), version);
        }
    }
}
