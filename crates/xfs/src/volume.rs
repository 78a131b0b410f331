//! An open volume: device, sizes, buffers, groups and inodes.

use crate::ag::{GroupGuard, GroupState};
use crate::cache::{BufferAddress, Cache};
use crate::error::Error;
use crate::format::{BufferKind, Superblock, TreeHeights};
use crate::geometry::Geometry;
use crate::inode::{Inode, InodeGuard, InodeTable};
use crate::trans::Transaction;
use crate::units::{AgNumber, InodeNumber};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use undercroft_block::{BlockDevice, Sector};

/// Whether a volume may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Never.
    ReadOnly,
    /// A new image that nobody else can see: changes skip the journal, the superblock comes last.
    Bulk,
}

/// An open volume. Shared by reference between threads.
#[derive(Debug)]
pub struct Volume {
    geometry: Arc<Geometry>,
    superblock: Superblock,
    heights: TreeHeights,
    cache: Cache,
    groups: Vec<Arc<Mutex<Option<GroupState>>>>,
    inodes: InodeTable,
    access: Access,
    poison: Mutex<Option<&'static str>>,
    /// Lists for the next transactions, kept to save allocations.
    joined_lists: Mutex<Vec<Vec<crate::cache::BufferRef>>>,
    /// Group of the next new directory (rotor).
    next_directory_group: AtomicU32,
}

impl Volume {
    /// Opens the file system that starts at sector 0 of `device`, for reading.
    ///
    /// The journal is not replayed: a volume that was not unmounted cleanly is seen as the last
    /// write-back left it.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, or the device failed.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let superblock = Superblock::read(device.as_ref(), Sector(0))?;
        superblock.verify_device(device.capacity())?;
        Ok(Self::new(device, superblock, Access::ReadOnly))
    }

    /// A volume over a device whose structures are yet to be written.
    pub(crate) fn create(device: Arc<dyn BlockDevice>, superblock: Superblock) -> Self {
        Self::new(device, superblock, Access::Bulk)
    }

    fn new(device: Arc<dyn BlockDevice>, superblock: Superblock, access: Access) -> Self {
        let geometry = Arc::new(superblock.geometry());
        let groups = (0..geometry.ag_count).map(|_| Arc::default()).collect();
        Self {
            heights: TreeHeights::new(&geometry),
            cache: Cache::new(device, Arc::clone(&geometry)),
            geometry,
            superblock,
            groups,
            inodes: InodeTable::default(),
            access,
            poison: Mutex::new(None),
            joined_lists: Mutex::default(),
            next_directory_group: AtomicU32::new(0),
        }
    }

    /// Sizes.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The superblock as it was when the volume was opened.
    #[must_use]
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Greatest heights of the trees.
    #[must_use]
    pub fn heights(&self) -> &TreeHeights {
        &self.heights
    }

    /// Metadata buffers.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Starts a transaction.
    ///
    /// # Errors
    /// The volume is read-only, or an earlier failure made it so.
    pub fn begin(&self) -> Result<Transaction<'_>, Error> {
        if self.access == Access::ReadOnly {
            return Err(Error::ReadOnly("it was opened for reading".into()));
        }
        if let Some(reason) = *self.poison.lock() {
            return Err(Error::ReadOnly(reason.into()));
        }
        Ok(Transaction::new(self))
    }

    /// Refuses every further change.
    pub(crate) fn poison(&self, reason: &'static str) {
        self.poison.lock().get_or_insert(reason);
    }

    /// Locks a group, reading its headers at first use; `None` if another thread holds it and the
    /// caller does not wait.
    pub(crate) fn lock_group(&self, ag: AgNumber, wait: bool) -> Result<Option<GroupGuard>, Error> {
        let slot = &self.groups[ag.0 as usize];
        let guard = if wait { Some(slot.lock_arc()) } else { slot.try_lock_arc() };
        let Some(mut guard) = guard else {
            return Ok(None);
        };
        if guard.is_none() {
            *guard = Some(GroupState::load(self, ag)?);
        }
        Ok(Some(guard))
    }

    /// Forgets the decoded headers of all groups, after they were written behind the engine's back.
    pub(crate) fn reload_groups(&self) {
        for group in &self.groups {
            *group.lock() = None;
        }
    }

    /// Locks an inode for change.
    ///
    /// # Errors
    /// The inode does not exist or is damaged.
    pub fn lock_inode(&self, number: InodeNumber) -> Result<InodeGuard, Error> {
        Ok(InodeGuard::new(self.inode(number)?))
    }

    /// An inode, read at first use.
    ///
    /// # Errors
    /// The inode does not exist or is damaged.
    pub fn inode(&self, number: InodeNumber) -> Result<Arc<Inode>, Error> {
        self.inodes.get_or_load(number, || Inode::load(self, number))
    }

    /// Makes a new inode known; its number must not be in use.
    pub(crate) fn insert_inode(&self, inode: Inode) -> Arc<Inode> {
        self.inodes.insert(inode)
    }

    /// Group in which the next directory goes, turning over all groups (algorithms reference,
    /// section 3.5).
    pub(crate) fn next_directory_group(&self) -> AgNumber {
        let next = self.next_directory_group.fetch_add(1, Ordering::Relaxed);
        AgNumber(next % self.geometry.ag_count)
    }

    /// Address of `len` blocks of a group from `block`.
    #[must_use]
    pub fn address(&self, ag: AgNumber, block: crate::units::AgBlock, len: u32) -> BufferAddress {
        let sector = self.geometry.ag_sector(ag, block);
        BufferAddress::contiguous(sector, len * self.geometry.sectors_per_block())
    }

    pub(crate) fn take_joined_list(&self) -> Vec<crate::cache::BufferRef> {
        self.joined_lists.lock().pop().unwrap_or_default()
    }

    pub(crate) fn give_joined_list(&self, mut list: Vec<crate::cache::BufferRef>) {
        list.clear();
        self.joined_lists.lock().push(list);
    }

    /// Reads a header sector of a group.
    pub(crate) fn header(
        &self,
        ag: AgNumber,
        index: u32,
        kind: BufferKind,
    ) -> Result<crate::cache::BufferRef, Error> {
        let sectors = (self.geometry.sector_size() / 512) as u32;
        let sector = self.geometry.header_sector(ag, index);
        self.cache.read(&BufferAddress::contiguous(sector, sectors), kind)
    }
}
