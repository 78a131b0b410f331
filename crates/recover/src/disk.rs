//! The device with a volume on it, and its sizes.

use std::sync::Arc;

use undercroft_block::{BlockDevice, Buffer, Sector, Window, read_buffer};
use undercroft_xfs_format::units::{AgBlock, AgNumber, FsBlock, InodeNumber};
use undercroft_xfs_format::{Geometry, Superblock};

use crate::error::RecoverError;
use crate::shape::Shape;

/// A volume to look through. Nothing is written to it.
#[derive(Clone)]
pub struct Disk {
    /// The bytes as they are, journal included.
    pub(crate) device: Arc<dyn BlockDevice>,
    /// The volume as it is after the replay of its journal.
    pub(crate) present: Arc<dyn BlockDevice>,
    pub(crate) geometry: Geometry,
}

impl Disk {
    /// The volume that starts with the device.
    ///
    /// # Errors
    /// The device failed, or has no superblock at its start.
    pub fn new(device: Arc<dyn BlockDevice>) -> Result<Self, RecoverError> {
        let present = Arc::clone(&device);
        Self::replayed(device, present)
    }

    /// A volume whose journal holds changes: `present` is the same device with the journal replayed,
    /// which [`device`](Self::new) stays without.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn replayed(
        device: Arc<dyn BlockDevice>,
        present: Arc<dyn BlockDevice>,
    ) -> Result<Self, RecoverError> {
        // Sectors of a superblock have 32 KiB at most.
        let bytes = present.capacity().to_bytes().unwrap_or(u64::MAX).min(32 << 10);
        let start = read_buffer(present.as_ref(), Sector(0), bytes as usize)?;
        let geometry = Superblock::decode(&start)?.geometry();
        Ok(Self { device, present, geometry })
    }

    /// A volume that starts at a sector of a device, with sizes that are known. `present` is as for
    /// [`replayed`](Self::replayed).
    pub(crate) fn placed(
        device: &Arc<dyn BlockDevice>,
        present: &Arc<dyn BlockDevice>,
        shape: &Shape,
    ) -> Option<Self> {
        let window = |whole: &Arc<dyn BlockDevice>| -> Option<Arc<dyn BlockDevice>> {
            let part = Window::from_sector(Arc::clone(whole), Sector(shape.start))?;
            Some(Arc::new(part))
        };
        let geometry = shape.geometry.clone();
        Some(Self { device: window(device)?, present: window(present)?, geometry })
    }

    /// Sizes of the volume.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The device of the volume, with its journal replayed where that was asked for.
    #[must_use]
    pub fn present(&self) -> &Arc<dyn BlockDevice> {
        &self.present
    }

    /// Blocks of the present volume. The caller has checked that they are in one group.
    pub(crate) fn blocks(&self, start: FsBlock, count: u32) -> Result<Buffer, RecoverError> {
        let sector = self.geometry.sector(start);
        let bytes = (count as usize) << self.geometry.block_log;
        Ok(read_buffer(self.present.as_ref(), sector, bytes)?)
    }

    /// The block of a sector.
    pub(crate) fn block_at(&self, sector: u64) -> Option<FsBlock> {
        let geometry = &self.geometry;
        let block = sector >> (geometry.block_log - 9);
        let ag = u32::try_from(block / u64::from(geometry.ag_blocks)).ok()?;
        let in_group = AgBlock((block % u64::from(geometry.ag_blocks)) as u32);
        Some(geometry.fs_block(AgNumber(ag), in_group))
    }

    /// The bytes of an inode of the present volume, if one of this number can be.
    pub(crate) fn inode(&self, number: InodeNumber) -> Result<Option<Vec<u8>>, RecoverError> {
        if !self.geometry.valid_inode(number) {
            return Ok(None);
        }
        let (ag, agino) = self.geometry.split_inode(number);
        let (block, index) = self.geometry.inode_block(agino);
        let bytes = self.blocks(self.geometry.fs_block(ag, block), 1)?;
        let size = self.geometry.inode_size();
        let start = index as usize * size;
        Ok(Some(bytes[start..start + size].to_vec()))
    }
}
