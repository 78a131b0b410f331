//! Block status: extents of metadata contexts.

use bitflags::bitflags;

use super::cursor::{Cursor, length};
use super::{ChunkKind, Dialect, ProtocolError};

bitflags! {
    /// Flags of an extent in the context [`BASE_ALLOCATION`](super::BASE_ALLOCATION).
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct AllocationFlags: u64 {
        /// No space is allocated.
        const HOLE = 1;
        /// Reads as zeroes.
        const ZERO = 1 << 1;
    }
}

/// A range with the same status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StatusExtent {
    /// Its length in bytes; not zero.
    pub length: u64,
    /// Its status, by the context.
    pub flags: u64,
}

/// The payload of a block status chunk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusChunk {
    /// The number of the context.
    pub context: u32,
    /// Extents, one behind the other from the offset of the request; at least one.
    pub extents: Vec<StatusExtent>,
}

impl StatusChunk {
    /// The kind of the chunk.
    pub fn kind(dialect: Dialect) -> ChunkKind {
        match dialect {
            Dialect::Extended => ChunkKind::BlockStatusExtended,
            Dialect::Simple | Dialect::Structured => ChunkKind::BlockStatus,
        }
    }

    /// Appends the payload. Without extended headers, lengths and flags must fit into 32 bits.
    pub fn encode(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        out.extend_from_slice(&self.context.to_be_bytes());
        if dialect == Dialect::Extended {
            out.extend_from_slice(&length(self.extents.len(), "extents")?.to_be_bytes());
            for extent in &self.extents {
                out.extend_from_slice(&extent.length.to_be_bytes());
                out.extend_from_slice(&extent.flags.to_be_bytes());
            }
            return Ok(());
        }
        for extent in &self.extents {
            for (what, number) in [("length of an extent", extent.length), ("status", extent.flags)]
            {
                let limit = u32::MAX.into();
                let short = u32::try_from(number).map_err(|_| ProtocolError::TooLong {
                    what,
                    length: number,
                    limit,
                })?;
                out.extend_from_slice(&short.to_be_bytes());
            }
        }
        Ok(())
    }

    /// From the payload of a chunk of `kind`.
    pub fn decode(kind: ChunkKind, payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(payload, "block status");
        let context = at.u32()?;
        let extended = kind == ChunkKind::BlockStatusExtended;
        let count = if extended { Some(at.u32()?) } else { None };
        let mut extents = Vec::with_capacity(at.left() / if extended { 16 } else { 8 });
        while at.left() > 0 {
            let extent = if extended {
                StatusExtent { length: at.u64()?, flags: at.u64()? }
            } else {
                StatusExtent { length: at.u32()?.into(), flags: at.u32()?.into() }
            };
            if extent.length == 0 {
                return Err(ProtocolError::Value { what: "length of an extent", found: 0 });
            }
            extents.push(extent);
        }
        let found = extents.len() as u64;
        if found == 0 || count.is_some_and(|count| u64::from(count) != found) {
            return Err(ProtocolError::Value { what: "count of extents", found });
        }
        Ok(Self { context, extents })
    }
}
