//! Files written back: for tickets, for space, and because too much is dirty.

use super::write_back::{Failures, write_back};
use crate::error::Error;
use crate::inode::{DirtyFiles, Files, Inode, SyncScope, Wanted, file_key};
use crate::log::{Refusal, UnsequencedTicket, WriteBack};
use crate::volume::Volume;
use smallvec::smallvec;
use std::sync::{Arc, Weak};

impl DirtyFiles {
    /// Writes these files back.
    ///
    /// # Errors
    /// The files whose data could not be written; all others were.
    pub(super) fn write_back(
        &self,
        volume: &Volume,
        files: &[(Arc<Inode>, SyncScope)],
    ) -> Result<(), Failures> {
        let failures = write_back(volume, files);
        self.update(files);
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }

    /// Writes one file back.
    ///
    /// # Errors
    /// Its data could not be written.
    pub(super) fn write_back_one(
        &self,
        volume: &Volume,
        inode: &Arc<Inode>,
        scope: SyncScope,
    ) -> Result<(), Error> {
        if inode.read().memory.dirty.is_none() {
            return Ok(());
        }
        let files: Files = smallvec![(Arc::clone(inode), scope)];
        self.write_back(volume, &files).map_err(first_error)
    }

    /// Writes everything back.
    ///
    /// # Errors
    /// Data of a file could not be written.
    pub(crate) fn write_back_all(&self, volume: &Volume) -> Result<(), Error> {
        self.write_back(volume, &self.dirty()).map_err(first_error)
    }
}

pub(super) fn first_error(failures: Failures) -> Error {
    let first = failures.into_values().min_by_key(|failure| failure.number);
    first.expect("a list of failures is not empty").error
}

impl WriteBack for Volume {
    fn write_back(&self) -> Vec<UnsequencedTicket> {
        let lists = self.files();
        let wanted = lists.take_wanted();
        let mut files: Files = wanted.iter().flat_map(|wanted| wanted.files.clone()).collect();
        if lists.budget.is_half_taken() {
            files.extend(lists.dirty());
        }
        let failures = lists.write_back(self, &files).err().unwrap_or_default();
        let mut kept = Vec::with_capacity(wanted.len());
        for Wanted { files, unsequenced } in wanted {
            match refusal(&files, &failures) {
                Some(refusal) => unsequenced.refuse(refusal),
                None => kept.push(unsequenced),
            }
        }
        kept
    }
}

/// Why a ticket for these files cannot be answered well, if so.
fn refusal(files: &Files, failures: &Failures) -> Option<Refusal> {
    if failures.is_empty() {
        return None;
    }
    files.iter().find_map(|(inode, _)| {
        let key = file_key(&inode.read());
        let failure = failures.get(&key)?;
        Some(Refusal::File(failure.number, Arc::clone(&failure.what)))
    })
}

impl Volume {
    /// Lets the journal write files back for threads that wait for them: once the volume is where
    /// it stays.
    pub(crate) fn register(self: &Arc<Self>) {
        if let Some(journal) = self.journal() {
            journal.set_files(|| {
                let weak: Weak<Self> = Arc::downgrade(self);
                weak
            });
        }
    }
}
