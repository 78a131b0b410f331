//! Log items of quotas (docs/format/journal/items.md#quotas).

use super::item::check_length;
use crate::FieldDefect;
use crate::bytes::{le32, le64};
use undercroft_block::Sector;

/// First region of a quota record's item; the record, big-endian, follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaItem {
    /// User, group or project.
    pub id: u32,
    /// Where the block of the record starts.
    pub sector: Sector,
    /// Length of the buffer in blocks.
    pub blocks: u32,
    /// Byte of the buffer at which the record starts.
    pub offset: u32,
}

impl QuotaItem {
    /// Bytes in the log.
    pub const LEN: usize = 24;

    /// Reads the first region.
    ///
    /// # Errors
    /// The region has another length.
    pub fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        check_length(region, Self::LEN)?;
        Ok(Self {
            id: le32(region, 4),
            sector: Sector(le64(region, 8)),
            blocks: le32(region, 16),
            offset: le32(region, 20),
        })
    }
}
