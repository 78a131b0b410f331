//! The volume under repair, as all steps share it: its bytes, its sizes, what was done so far.

use std::sync::Arc;

use undercroft_block::Sector;
use undercroft_recover::Disk;
use undercroft_xfs::format::{Geometry, Superblock};
use undercroft_xfs::units::{FsBlock, InodeNumber};

use crate::action::{Action, Place};
use crate::error::RepairError;
use crate::scratch::Scratch;

/// A volume under repair.
pub(crate) struct Subject {
    pub(crate) scratch: Scratch,
    pub(crate) superblock: Superblock,
    pub(crate) geometry: Geometry,
    pub(crate) disk: Disk,
    pub(crate) actions: Vec<Action>,
    /// The cycle that the journal has to begin with, if it has to begin anew.
    pub(crate) new_cycle: Option<u32>,
}

impl Subject {
    /// A volume whose superblock is sound.
    pub(crate) fn new(
        scratch: Scratch,
        superblock: Superblock,
        actions: Vec<Action>,
    ) -> Result<Self, RepairError> {
        let disk = Disk::new(scratch.device())?;
        let geometry = superblock.geometry();
        Ok(Self { scratch, superblock, geometry, disk, actions, new_cycle: None })
    }

    /// Reads the superblock again, which was changed.
    pub(crate) fn reload(&mut self) -> Result<(), RepairError> {
        let bytes = self.scratch.read(Sector(0), self.geometry.sector_size())?;
        self.superblock = Superblock::decode(&bytes).map_err(|_| RepairError::NoSuperblock)?;
        self.geometry = self.superblock.geometry();
        self.disk = Disk::new(self.scratch.device())?;
        Ok(())
    }

    /// Files that the superblock leads to.
    pub(crate) fn rooted(&self) -> Vec<InodeNumber> {
        let superblock = &self.superblock;
        let quota = [
            superblock.user_quota_inode,
            superblock.group_quota_inode,
            superblock.project_quota_inode,
        ];
        let quota = quota.into_iter().filter(|it| it.0 != 0 && self.geometry.valid_inode(*it));
        let realtime = [superblock.rt_bitmap_inode, superblock.rt_summary_inode];
        realtime.into_iter().chain(quota).collect()
    }

    pub(crate) fn note(&mut self, place: Place, what: impl Into<String>) {
        self.actions.push(Action { place, what: what.into(), loss: None });
    }

    pub(crate) fn note_loss(
        &mut self,
        place: Place,
        what: impl Into<String>,
        loss: impl Into<String>,
    ) {
        self.actions.push(Action { place, what: what.into(), loss: Some(loss.into()) });
    }

    /// Blocks of one group.
    pub(crate) fn blocks(&self, start: FsBlock, count: u32) -> Result<Vec<u8>, RepairError> {
        self.scratch.read(self.geometry.sector(start), (count as usize) << self.geometry.block_log)
    }

    pub(crate) fn read_inode(&self, number: InodeNumber) -> Result<Vec<u8>, RepairError> {
        self.scratch.read(self.geometry.inode_sector(number), self.geometry.inode_size())
    }

    pub(crate) fn write_inode(
        &self,
        number: InodeNumber,
        bytes: &mut [u8],
    ) -> Result<(), RepairError> {
        undercroft_xfs::format::stamp_inode_crc(bytes);
        self.scratch.write(self.geometry.inode_sector(number), bytes)
    }

    /// The device as the repair leaves it.
    pub(crate) fn device(&self) -> Arc<dyn undercroft_block::BlockDevice> {
        self.scratch.device()
    }
}
