//! The end of a file whose last opening was dropped, and of all files when the volume is closed.

use super::OpenFile;
use super::edit::FileEdit;
use super::reclaim::reclaim;
use crate::error::Error;
use crate::inode::file_key;
use crate::inode::{Inode, file_locks};
use crate::volume::Volume;
use std::sync::Arc;
use undercroft_block::Batch;

/// The work left for a file that is not open any more.
enum Rest {
    Nothing,
    /// It has space behind its end for writes that will not come.
    Trim,
    /// It has no name.
    Reclaim,
}

impl OpenFile {
    /// Takes back what opening did; once.
    pub(super) fn let_go(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        match self.leave() {
            Rest::Nothing => Ok(()),
            Rest::Trim => trim(&self.volume, &self.inode),
            Rest::Reclaim => reclaim(&self.volume, &self.inode),
        }
    }

    fn leave(&self) -> Rest {
        let mut state = self.inode.write();
        state.memory.opens -= 1;
        if state.memory.opens > 0 || state.core.mode == 0 {
            return Rest::Nothing;
        }
        if state.core.nlink == 0 {
            if self.volume.is_read_only() || state.memory.is_going {
                return Rest::Nothing;
            }
            state.memory.is_going = true;
            return Rest::Reclaim;
        }
        let is_dirty = state.memory.dirty.is_some();
        let growth = &mut state.memory.growth;
        growth.is_open = false;
        let before = *growth;
        growth.comes_back |= is_dirty;
        if before.has_space && !before.comes_back && !is_dirty { Rest::Trim } else { Rest::Nothing }
    }
}

/// Gives back the space of a file behind its end for writes to come.
pub(super) fn trim(volume: &Volume, inode: &Arc<Inode>) -> Result<(), Error> {
    let lock = file_locks(inode).lock_data();
    let trimmed = FileEdit::plugged(volume, Arc::clone(inode), lock, Batch::new())
        .and_then(|mut edit| edit.trim());
    match trimmed {
        // Removed meanwhile.
        Ok(()) | Err(Error::Stale { .. }) => {}
        other => return other,
    }
    let key = file_key(&inode.read());
    volume.files().forget_growth(key);
    Ok(())
}

/// Gives back the space of all files behind their ends for writes to come.
///
/// # Errors
/// A damaged structure; the device failed.
pub(crate) fn trim_all(volume: &Volume) -> Result<(), Error> {
    volume.files().growing().iter().try_for_each(|inode| trim(volume, inode))
}

impl Volume {
    /// Frees space that files have reserved and may not need: dirty data gets its space, files give
    /// back the blocks behind their ends, those without a name that are on their way out all of
    /// theirs, and the freeing is made durable.
    pub(super) fn gather_space(&self) -> Result<(), Error> {
        undercroft_block::flush_plugs();
        self.files().reclaims.wait();
        self.files().write_back_all(self)?;
        trim_all(self)?;
        self.sync()
    }
}
