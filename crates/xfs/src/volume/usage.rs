//! How full a volume is.

use super::Volume;
use crate::error::Error;

/// The blocks and inodes of a volume, and the free ones. Of a live volume these are the present
/// figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Bytes of a block.
    pub block_size: u32,
    /// Blocks for files and their metadata: all but the journal.
    pub blocks: u64,
    /// Blocks that files can have: not taken, not reserved for data in memory, and not set aside
    /// for the volume itself.
    pub free_blocks: u64,
    /// Inodes in use.
    pub inodes: u64,
    /// Inodes that there is space for besides.
    pub free_inodes: u64,
}

impl Volume {
    /// How full the volume is, as `statfs` says it. Reads the headers of all groups at first.
    ///
    /// # Errors
    /// A group's headers are damaged, or the device failed.
    pub fn usage(&self) -> Result<Usage, Error> {
        self.count_free_space()?;
        let (counters, geometry) = (self.counters()?, self.geometry());
        let free_blocks = self.free_space.available();
        let journal = if geometry.log_start.is_null() { 0 } else { geometry.log_blocks };
        let unused = free_blocks.saturating_mul(geometry.inodes_per_block().into());
        Ok(Usage {
            // At most 64 KiB.
            block_size: geometry.block_size() as u32,
            blocks: geometry.blocks.saturating_sub(journal.into()),
            free_blocks,
            inodes: counters.inodes.saturating_sub(counters.free_inodes),
            free_inodes: counters.free_inodes.saturating_add(unused),
        })
    }
}
