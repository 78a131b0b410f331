//! Inodes by their numbers: read at first use, told from freed ones.

use crate::error::Error;
use crate::format::{BufferKind, InodeCore, inode_crc_matches};
use crate::group_tree::is_inode_in_use;
use crate::inode::{Fork, ForkKind, Inode, InodeGuard, InodeState, place};
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::sync::Arc;
use std::time::Duration;
use undercroft_locks::with_key;

/// How often the lock of a group is tried to learn whether a damaged inode is in use.
const GROUP_ATTEMPTS: u32 = 50;

/// The error of a number whose inode is not in use. That of the root directory is in the
/// superblock, and it is never removed: there it is damage.
fn not_in_use(volume: &Volume, inode: InodeNumber) -> Error {
    let error = Error::Stale { inode };
    if inode == volume.geometry().root_inode { error.into_damage() } else { error }
}

/// Tells an inode that is gone from one that is damaged: its blocks go with the last inode in them,
/// and then hold anything.
fn gone_or(error: Error, volume: &Volume, number: InodeNumber) -> Error {
    if !error.is_damage() || !volume.geometry().valid_inode(number) {
        return error;
    }
    // Bounded: the caller itself may hold the group. Other threads unlock it soon.
    for _ in 0..GROUP_ATTEMPTS {
        match is_inode_in_use(volume, number, false) {
            Ok(Some(false)) => return not_in_use(volume, number),
            Ok(Some(true)) | Err(_) => break,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    error
}

impl InodeState {
    /// Reads and verifies an inode.
    ///
    /// # Errors
    /// No inode of this number can exist, it is free or damaged, or the device failed.
    pub(crate) fn load(volume: &Volume, number: InodeNumber) -> Result<Self, Error> {
        let state = Self::load_any(volume, number);
        let state = state.map_err(|error| gone_or(error, volume, number))?;
        if state.core.mode == 0 {
            return Err(not_in_use(volume, number));
        }
        Ok(state)
    }

    /// Reads and verifies an inode, which may be free.
    ///
    /// # Errors
    /// No inode of this number can exist, it is damaged, or the device failed.
    pub(crate) fn load_any(volume: &Volume, number: InodeNumber) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let damaged = |what: String| Error::Inode { inode: number, what };
        if !geometry.valid_inode(number) {
            return Err(not_in_use(volume, number));
        }
        let (address, offset) = place(geometry, number);
        let buffer = volume.cache().read(&address, BufferKind::InodeCluster)?;
        let cluster = buffer.read();
        let bytes = &cluster[offset..offset + geometry.inode_size()];
        if geometry.features.crc && !inode_crc_matches(bytes) && !buffer_is_newer(&cluster) {
            return Err(damaged("checksum does not match".into()));
        }
        let core = InodeCore::decode(bytes, geometry).map_err(damaged)?;
        core.verify(number, geometry).map_err(damaged)?;
        let data = Fork::decode(&core, ForkKind::Data, bytes, geometry).map_err(damaged)?;
        let attr = match core.forkoff {
            0 => None,
            _ => Some(Fork::decode(&core, ForkKind::Attr, bytes, geometry).map_err(damaged)?),
        };
        Ok(Self::stored(number, core, data, attr))
    }
}

/// Whether a cluster was changed since it was read: checksums of its inodes are then old.
fn buffer_is_newer(cluster: &crate::cache::ReadGuard<'_>) -> bool {
    cluster.is_changed()
}

impl Volume {
    /// Locks an inode for change: for callers alone on the volume, which fill a new image or finish
    /// intents of a journal. Beside others, inodes are locked in the order of their numbers.
    ///
    /// # Errors
    /// The inode does not exist or is damaged.
    pub fn lock_inode(&self, number: InodeNumber) -> Result<InodeGuard, Error> {
        let inode = self.inode(number)?;
        Ok(with_key(number.0, || InodeGuard::at_once(&inode)))
    }

    /// As [`lock_inode`](Self::lock_inode), for operations beside others: in the order of numbers,
    /// which debug builds check.
    pub(crate) fn lock_inode_in_order(&self, number: InodeNumber) -> Result<InodeGuard, Error> {
        let inode = self.inode(number)?;
        Ok(with_key(number.0, || InodeGuard::new(&inode)))
    }

    /// An inode, read at first use.
    ///
    /// # Errors
    /// [`Error::Stale`] if the inode is not in use: [`Error::into_damage`] is for callers that have
    /// its number from the volume. It is damaged; the device failed. It is not checked whether
    /// blocks that hold a sound inode still are blocks of inodes: keep the inode, not its number,
    /// where others may remove it.
    pub fn inode(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        self.inodes().get_or_load(number, || InodeState::load(self, number))
    }

    /// As [`inode`](Self::inode), of a number from elsewhere, at whose place there may be anything.
    ///
    /// # Errors
    /// [`Error::Stale`] if no file has the number; the inode is damaged; the device failed.
    pub fn inode_in_use(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        if !self.is_inode_in_use(number)? {
            return Err(Error::Stale { inode: number });
        }
        self.inode(number)
    }

    /// Whether the group of an inode says that it is in use: of a number from elsewhere, at whose
    /// place there may be anything.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub(crate) fn is_inode_in_use(&self, number: InodeNumber) -> Result<bool, Error> {
        if !self.geometry().valid_inode(number) || self.inodes().knows(number) {
            return Ok(self.geometry().valid_inode(number));
        }
        Ok(is_inode_in_use(self, number, true)?.unwrap_or(false))
    }
}
