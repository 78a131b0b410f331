//! Times of access. They are worth no write of their own: one is part of its inode in memory at
//! once, and is stored with the next change of the inode, or with those of many others.

use crate::error::Error;
use crate::format::Timestamp;
use crate::inode::file_key;
use crate::inode::{Inode, InodeGuard};
use crate::log::Work;
use crate::volume::Volume;
use std::sync::Arc;

/// Inodes that may wait for their time of access to be stored. They stay in memory.
const WAITING_MAX: usize = 1024;

impl Volume {
    /// Records that the content of an inode was read at `now`. Stored when the inode is committed
    /// next, when much has gathered, or when the volume is closed; a crash before loses it. On a
    /// volume that is not open for changes through its journal it is ignored.
    ///
    /// The caller has no transaction open, and holds no lock of an inode.
    pub fn note_access(&self, inode: &Arc<Inode>, now: Timestamp) {
        if !self.is_live() || self.is_read_only() {
            return;
        }
        let Ok(_change) = self.changes().begin() else { return };
        let waiting = {
            let mut state = inode.write();
            if state.core.mode == 0 {
                return;
            }
            state.core.atime = now.clamped(state.core.timestamp_encoding());
            if std::mem::replace(&mut state.memory.accessed, true) {
                return;
            }
            self.files().add_accessed(file_key(&state), inode)
        };
        if waiting > WAITING_MAX {
            // The reader is not told of it; an error that matters has made the volume read-only.
            let _ = store_accessed(self);
        }
    }
}

/// Stores the times of access that wait for it.
///
/// # Errors
/// The cluster of an inode could not be read; the volume is read-only.
pub(crate) fn store_accessed(volume: &Volume) -> Result<(), Error> {
    for inode in volume.files().take_accessed() {
        let mut trans = volume.begin_accepted(volume.log_space().of(Work::Metadata))?;
        let mut inode = InodeGuard::new(&inode);
        // Another change may have stored it, and it may be gone.
        if inode.memory.accessed && inode.core.mode != 0 {
            trans.begin_changes();
            inode.touch();
            trans.commit(&mut [&mut inode])?;
        }
    }
    Ok(())
}
