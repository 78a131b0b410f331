//! A record of the reference count tree: blocks with the same number of owners.
//!
//! Bit 31 of the start separates two domains: shared data blocks, and blocks set aside for
//! copy-on-write (docs/format/reference-counts.md#record).

use crate::bytes::{be32, put_be32};
use crate::units::AgBlock;
use crate::{FieldDefect, Rule};

/// The bit of the stored start that marks a block set aside for copy-on-write.
const COW_BIT: u32 = 1 << 31;

/// What a reference count record is about. Copy-on-write records sort last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefcountDomain {
    /// Data blocks with two or more owners.
    Shared,
    /// Blocks set aside for copy-on-write; the count is 1.
    Cow,
}

/// Sort key: domain, then first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefcountKey {
    /// Shared blocks before staging blocks.
    pub domain: RefcountDomain,
    /// First block.
    pub start: AgBlock,
}

/// A run of blocks with the same reference count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefcountRecord {
    /// Shared data or copy-on-write staging.
    pub domain: RefcountDomain,
    /// First block.
    pub start: AgBlock,
    /// Length in blocks, at least 1.
    pub len: u32,
    /// Owners: at least 2 for shared blocks, exactly 1 for staging blocks.
    pub refcount: u32,
}

impl RefcountKey {
    /// Bytes on disk.
    pub const LEN: usize = 4;

    /// Decodes the key.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        let word = be32(bytes, 0);
        let cow = word & COW_BIT != 0;
        let domain = if cow { RefcountDomain::Cow } else { RefcountDomain::Shared };
        Self { domain, start: AgBlock(word & !COW_BIT) }
    }

    /// Stores the key in the first bytes of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        let cow = if self.domain == RefcountDomain::Cow { COW_BIT } else { 0 };
        put_be32(out, 0, (self.start.0 & !COW_BIT) | cow);
    }
}

impl RefcountRecord {
    /// Bytes on disk.
    pub const LEN: usize = 12;

    /// Decodes the record; any bytes give a record, [`validate`](Self::validate) judges it.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        let RefcountKey { domain, start } = RefcountKey::decode(bytes);
        Self { domain, start, len: be32(bytes, 4), refcount: be32(bytes, 8) }
    }

    /// Stores the record in the first bytes of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        self.key().encode(out);
        put_be32(out, 4, self.len);
        put_be32(out, 8, self.refcount);
    }

    /// Where the record sorts.
    #[must_use]
    #[inline]
    pub fn key(&self) -> RefcountKey {
        RefcountKey { domain: self.domain, start: self.start }
    }

    /// Checks what can be checked without knowing the group.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), FieldDefect> {
        FieldDefect::unless(self.len > 0, "blockcount", self.len, Rule::AtLeast(1))?;
        let start = self.start.0;
        let fits = start.checked_add(self.len).is_some_and(|end| end <= COW_BIT);
        FieldDefect::unless(fits, "startblock", start, Rule::Text("inside the group"))?;
        let (holds, rule) = match self.domain {
            RefcountDomain::Shared => (self.refcount >= 2, Rule::AtLeast(2)),
            RefcountDomain::Cow => (self.refcount == 1, Rule::Equal(1)),
        };
        FieldDefect::unless(holds, "refcount", self.refcount, rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_records_sort_last() {
        let shared = [0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 3];
        let staging = [0x80, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 1];
        let (one, two) = (RefcountRecord::decode(&shared), RefcountRecord::decode(&staging));
        assert_eq!((one.domain, one.start), (RefcountDomain::Shared, AgBlock(9)));
        assert_eq!((two.domain, two.start), (RefcountDomain::Cow, AgBlock(5)));
        assert!(one.key() < two.key());
        for (record, bytes) in [(one, shared), (two, staging)] {
            let mut out = [0; RefcountRecord::LEN];
            record.encode(&mut out);
            assert_eq!(out, bytes);
            assert!(record.validate().is_ok());
        }
        assert_eq!(RefcountRecord { refcount: 1, ..one }.validate().unwrap_err().field, "refcount");
        assert_eq!(RefcountRecord { refcount: 2, ..two }.validate().unwrap_err().field, "refcount");
        assert_eq!(RefcountRecord { len: 0, ..two }.validate().unwrap_err().field, "blockcount");
        let long = RefcountRecord { len: COW_BIT, ..one };
        assert_eq!(long.validate().unwrap_err().field, "startblock");
    }
}
