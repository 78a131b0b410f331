//! A mapping of file blocks to blocks of the volume.
//!
//! The same sixteen bytes are the record of a fork's mapping tree and the element of an inline
//! extent list (docs/format/extents.md#record).

use crate::bytes::{be64, put_be64};
use crate::units::{FileBlock, FsBlock};
use crate::{FieldDefect, Rule};

/// A run of file blocks and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First file block, 54 bits.
    pub offset: FileBlock,
    /// First block of the volume, 52 bits.
    pub start: FsBlock,
    /// Length in blocks, 1 to [`Extent::MAX_LEN`].
    pub len: u32,
    /// Allocated but unwritten: reads as zeros. Data forks only.
    pub unwritten: bool,
}

impl Extent {
    /// Bytes on disk.
    pub const LEN: usize = 16;
    /// Most blocks of one mapping.
    pub const MAX_LEN: u32 = (1 << 21) - 1;
    /// Largest block number a mapping can point at.
    pub const MAX_START: FsBlock = FsBlock((1 << 52) - 1);

    /// Decodes the mapping; any bytes give one, [`validate`](Self::validate) judges it.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        let (high, low) = (be64(bytes, 0), be64(bytes, 8));
        Self {
            offset: FileBlock(high >> 9 & FileBlock::MAX.0),
            start: FsBlock((high & 0x1ff) << 43 | low >> 21),
            // 21 bits.
            len: (low & u64::from(Self::MAX_LEN)) as u32,
            unwritten: high >> 63 != 0,
        }
    }

    /// Stores the mapping in the first bytes of `out`. The fields must be in range.
    pub fn encode(&self, out: &mut [u8]) {
        debug_assert!(self.offset <= FileBlock::MAX && self.start <= Self::MAX_START);
        debug_assert!(self.len <= Self::MAX_LEN);
        let (offset, start) = (self.offset.0, self.start.0 & Self::MAX_START.0);
        let high = u64::from(self.unwritten) << 63 | (offset & FileBlock::MAX.0) << 9 | start >> 43;
        put_be64(out, 0, high);
        put_be64(out, 8, start << 21 | u64::from(self.len & Self::MAX_LEN));
    }

    /// The part of the mapping in `[from, to)`; `None` if there is none.
    #[must_use]
    pub fn part(&self, from: FileBlock, to: FileBlock) -> Option<Self> {
        let (from, to) = (self.offset.max(from), self.end().min(to));
        (from < to).then(|| Self {
            offset: from,
            start: FsBlock(self.start.0 + (from.0 - self.offset.0)),
            // No longer than the mapping.
            len: (to.0 - from.0) as u32,
            unwritten: self.unwritten,
        })
    }

    /// First file block after the mapping.
    #[must_use]
    #[inline]
    pub fn end(&self) -> FileBlock {
        FileBlock(self.offset.0.saturating_add(u64::from(self.len)))
    }

    /// Checks what can be checked without knowing the volume.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), FieldDefect> {
        let max = u64::from(Self::MAX_LEN);
        FieldDefect::unless(self.len > 0, "blockcount", self.len, Rule::AtLeast(1))?;
        FieldDefect::unless(self.len <= Self::MAX_LEN, "blockcount", self.len, Rule::AtMost(max))?;
        let (offset, limit) = (self.offset, FileBlock::MAX);
        FieldDefect::unless(offset <= limit, "startoff", offset.0, Rule::AtMost(limit.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of docs/format/extents.md#record.
    #[test]
    fn worked_bytes() {
        let extent = Extent { offset: FileBlock(0), start: FsBlock(24), len: 1, unwritten: false };
        let mut bytes = [0xff; Extent::LEN];
        extent.encode(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0x01]);
        assert_eq!(Extent::decode(&bytes), extent);
    }

    #[test]
    fn an_empty_mapping_is_refused() {
        assert_eq!(Extent::decode(&[0; 16]).validate().unwrap_err().field, "blockcount");
    }

    proptest! {
        #[test]
        fn round_trip(
            offset in 0..=FileBlock::MAX.0,
            start in 0..=Extent::MAX_START.0,
            len in 1..=Extent::MAX_LEN,
            unwritten: bool,
        ) {
            let (offset, start) = (FileBlock(offset), FsBlock(start));
            let extent = Extent { offset, start, len, unwritten };
            let mut bytes = [0; Extent::LEN];
            extent.encode(&mut bytes);
            prop_assert_eq!(Extent::decode(&bytes), extent);
        }
    }
}
