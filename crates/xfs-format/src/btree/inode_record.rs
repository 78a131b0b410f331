//! A record of the inode trees: one chunk of 64 inodes.
//!
//! With the feature SPINODES parts of the chunk may be missing and the record says which; without
//! it the same four bytes are one free count (docs/format/inode-chunks.md#record).

use crate::bytes::{be16, be32, be64, put_be16, put_be32, put_be64};
use crate::units::AgInode;
use crate::{FieldDefect, Rule};

/// A chunk of inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InodeChunkRecord {
    /// First inode of the chunk.
    pub start: AgInode,
    /// Bit `i` set: inodes `4 * i` to `4 * i + 3` do not exist. Zero without SPINODES.
    pub holemask: u16,
    /// Inodes that exist, 4 to 64. Always 64 without SPINODES.
    pub count: u8,
    /// Free inodes; those of holes do not count.
    pub freecount: u8,
    /// Bit `i` set: inode `i` is free, or does not exist.
    pub free: u64,
}

impl InodeChunkRecord {
    /// Bytes on disk.
    pub const LEN: usize = 16;
    /// Inodes of a full chunk.
    pub const INODES: u8 = 64;
    /// Inodes that one bit of the hole mask stands for.
    pub const INODES_PER_HOLE: u32 = 4;

    /// Decodes the record, in the form with a hole mask if `sparse`; any bytes give a record,
    /// [`validate`](Self::validate) judges it.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8], sparse: bool) -> Self {
        let (holemask, count, freecount) = if sparse {
            (be16(bytes, 4), bytes[6], bytes[7])
        } else {
            // More than 255 free inodes are as invalid as 255.
            (0, Self::INODES, u8::try_from(be32(bytes, 4)).unwrap_or(u8::MAX))
        };
        Self { start: AgInode(be32(bytes, 0)), holemask, count, freecount, free: be64(bytes, 8) }
    }

    /// Stores the record in the first bytes of `out`.
    pub fn encode(&self, sparse: bool, out: &mut [u8]) {
        put_be32(out, 0, self.start.0);
        if sparse {
            put_be16(out, 4, self.holemask);
            out[6] = self.count;
            out[7] = self.freecount;
        } else {
            put_be32(out, 4, u32::from(self.freecount));
        }
        put_be64(out, 8, self.free);
    }

    /// Bit `i` set: inode `i` exists.
    #[must_use]
    pub fn existing(&self) -> u64 {
        if self.holemask == 0 {
            return u64::MAX;
        }
        let holes = (0..16).filter(|hole| self.holemask & (1 << hole) != 0);
        !holes.fold(0, |mask, hole| mask | 0xf << (hole * Self::INODES_PER_HOLE))
    }

    /// Bit `i` set: inode `i` exists and is free.
    #[must_use]
    pub fn allocatable(&self) -> u64 {
        self.free & self.existing()
    }

    /// Checks the counts against the masks and that holes are marked free.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), FieldDefect> {
        let existing = self.existing();
        let (count, free) = (existing.count_ones(), (self.free & existing).count_ones());
        let start = self.start.0;
        let fits = start.checked_add(u32::from(Self::INODES) - 1).is_some();
        FieldDefect::unless(fits, "startino", start, Rule::Text("inside the group"))?;
        FieldDefect::unless(count >= 4, "holemask", self.holemask, Rule::Text("not all holes"))?;
        let same = u32::from(self.count) == count;
        FieldDefect::unless(same, "count", self.count, Rule::Equal(count.into()))?;
        let same = u32::from(self.freecount) == free;
        FieldDefect::unless(same, "freecount", self.freecount, Rule::Equal(free.into()))?;
        let marked = self.free | existing == u64::MAX;
        FieldDefect::unless(marked, "free", self.free, Rule::Text("set for all holes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_full_forms() {
        let bytes =
            [0, 0, 0, 0x80, 0xff, 0, 32, 29, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf8];
        let record = InodeChunkRecord::decode(&bytes, true);
        assert_eq!((record.start, record.holemask), (AgInode(0x80), 0xff00));
        assert_eq!(record.existing(), 0xffff_ffff);
        assert_eq!(record.allocatable(), 0xffff_fff8);
        assert_eq!(record.validate(), Ok(()));
        let mut out = [0; InodeChunkRecord::LEN];
        record.encode(true, &mut out);
        assert_eq!(out, bytes);

        let full = [0, 0, 0, 0x40, 0, 0, 0, 61, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf8];
        let record = InodeChunkRecord::decode(&full, false);
        assert_eq!((record.count, record.freecount), (64, 61));
        assert_eq!(record.validate(), Ok(()));
        record.encode(false, &mut out);
        assert_eq!(out, full);
        assert_eq!(InodeChunkRecord::decode(&full, true).validate().unwrap_err().field, "count");
    }

    #[test]
    fn counts_that_disagree_are_refused() {
        let good = InodeChunkRecord {
            start: AgInode(64),
            holemask: 0,
            count: 64,
            freecount: 64,
            free: u64::MAX,
        };
        assert!(good.validate().is_ok());
        assert_eq!(
            InodeChunkRecord { freecount: 63, ..good }.validate().unwrap_err().field,
            "freecount"
        );
        let all_holes = InodeChunkRecord { holemask: u16::MAX, ..good };
        assert_eq!(all_holes.validate().unwrap_err().field, "holemask");
        let unmarked = InodeChunkRecord { holemask: 1, count: 60, free: !1, freecount: 60, ..good };
        assert_eq!(unmarked.validate().unwrap_err().field, "free");
        let far = InodeChunkRecord { start: AgInode(u32::MAX - 1), ..good };
        assert_eq!(far.validate().unwrap_err().field, "startino");
    }
}
