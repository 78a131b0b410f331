//! Log item of a new chunk of inodes (docs/format/journal/items.md#new-chunk-of-inodes).

use super::item::check_length;
use crate::bytes::be32;
use crate::units::{AgBlock, AgNumber};
use crate::{FieldDefect, LogItemKind};

/// A chunk of inodes to initialise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeCreateItem {
    /// Group.
    pub ag: AgNumber,
    /// First block of the chunk.
    pub block: AgBlock,
    /// Inodes.
    pub count: u32,
    /// Bytes of an inode.
    pub inode_size: u32,
    /// Length in blocks.
    pub blocks: u32,
    /// Generation of all of the inodes.
    pub generation: u32,
}

impl InodeCreateItem {
    /// Bytes in the log.
    pub const LEN: usize = 28;

    /// Reads the only region of the item. Whether such a chunk can be is for the caller to say.
    ///
    /// # Errors
    /// The region has another length.
    pub fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        check_length(region, Self::LEN)?;
        Ok(Self {
            ag: AgNumber(be32(region, 4)),
            block: AgBlock(be32(region, 8)),
            count: be32(region, 12),
            inode_size: be32(region, 16),
            blocks: be32(region, 20),
            generation: be32(region, 24),
        })
    }

    /// Appends the region.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(LogItemKind::InodeCreate.encode(1));
        let Self { ag, block, count, inode_size, blocks, generation } = self;
        for word in [ag.0, block.0, *count, *inode_size, *blocks, *generation] {
            out.extend(word.to_be_bytes());
        }
    }
}
