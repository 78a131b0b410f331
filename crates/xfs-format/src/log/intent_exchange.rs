//! Ranges of two files to exchange (docs/format/journal/intents.md#exchanges).

use super::item::check_length;
use crate::FieldDefect;
use crate::bytes::{le32, le64};
use crate::units::{FileBlock, InodeNumber};
use bitflags::bitflags;

bitflags! {
    /// How ranges are exchanged.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ExchangeFlags: u64 {
        /// Those of the attribute forks.
        const ATTR_FORK = 1;
        /// The files exchange their sizes at the end.
        const SET_SIZES = 2;
        /// Only what the first file has written.
        const FIRST_WRITTEN = 4;
        /// The first file shares no blocks afterwards.
        const FIRST_CLEAR_REFLINK = 8;
        /// The second file shares no blocks afterwards.
        const SECOND_CLEAR_REFLINK = 16;
    }
}

/// One of the two files of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeSide {
    /// The file.
    pub inode: InodeNumber,
    /// Generation that it must have.
    pub generation: u32,
    /// Where the rest of its range starts.
    pub start: FileBlock,
    /// Size that it gets at the end, in bytes.
    pub size: u64,
}

/// What remains of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The two files.
    pub sides: [ExchangeSide; 2],
    /// Length of the range in blocks.
    pub blocks: u64,
    /// How.
    pub flags: ExchangeFlags,
}

impl Exchange {
    const LEN: usize = 88;

    pub(crate) fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        check_length(region, Self::LEN)?;
        let side = |index: usize| ExchangeSide {
            inode: InodeNumber(le64(region, 16 + 8 * index)),
            generation: le32(region, 32 + 4 * index),
            start: FileBlock(le64(region, 40 + 8 * index)),
            size: le64(region, 72 + 8 * index),
        };
        Ok(Self {
            sides: [side(0), side(1)],
            blocks: le64(region, 56),
            flags: ExchangeFlags::from_bits_retain(le64(region, 64)),
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.sides.iter().for_each(|side| out.extend(side.inode.0.to_le_bytes()));
        self.sides.iter().for_each(|side| out.extend(side.generation.to_le_bytes()));
        self.sides.iter().for_each(|side| out.extend(side.start.0.to_le_bytes()));
        out.extend(self.blocks.to_le_bytes());
        out.extend(self.flags.bits().to_le_bytes());
        self.sides.iter().for_each(|side| out.extend(side.size.to_le_bytes()));
    }
}
