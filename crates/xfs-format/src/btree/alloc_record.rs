//! A record of the free space trees: one maximal free extent.
//!
//! The same eight bytes are record and key of both trees (docs/format/free-space.md#record).

use crate::bytes::{be32, put_be32};
use crate::units::AgBlock;
use crate::{FieldDefect, Rule};

/// A free extent of an allocation group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocRecord {
    /// First block.
    pub start: AgBlock,
    /// Length in blocks, at least 1.
    pub len: u32,
}

impl AllocRecord {
    /// Bytes on disk.
    pub const LEN: usize = 8;

    /// Decodes the record; any bytes give a record, [`validate`](Self::validate) judges it.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        Self { start: AgBlock(be32(bytes, 0)), len: be32(bytes, 4) }
    }

    /// Stores the record in the first bytes of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        put_be32(out, 0, self.start.0);
        put_be32(out, 4, self.len);
    }

    /// First block after the extent; `None` past the end of the number space.
    #[must_use]
    pub fn end(&self) -> Option<AgBlock> {
        self.start.checked_add(self.len)
    }

    /// Checks what can be checked without knowing the group.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), FieldDefect> {
        FieldDefect::unless(self.len > 0, "blockcount", self.len, Rule::AtLeast(1))?;
        let fits = self.end().is_some();
        FieldDefect::unless(fits, "startblock", self.start.0, Rule::Text("inside the group"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_limits() {
        let bytes = [0, 0, 1, 2, 0, 0, 0, 9];
        let record = AllocRecord::decode(&bytes);
        assert_eq!(record, AllocRecord { start: AgBlock(0x102), len: 9 });
        let mut out = [0xff; AllocRecord::LEN];
        record.encode(&mut out);
        assert_eq!(out, bytes);
        assert!(record.validate().is_ok());
        assert_eq!(AllocRecord { len: 0, ..record }.validate().unwrap_err().field, "blockcount");
        assert!(AllocRecord { start: AgBlock(u32::MAX), len: 1 }.validate().is_err());
    }
}
