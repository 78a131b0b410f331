//! Size, abilities and block sizes of an export.

use bitflags::bitflags;

use super::ProtocolError;
use super::cursor::Cursor;

bitflags! {
    /// Abilities of an export.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct TransmissionFlags: u16 {
        /// Always set.
        const HAS_FLAGS = 1;
        /// Writes fail.
        const READ_ONLY = 1 << 1;
        /// Flushes are understood.
        const SEND_FLUSH = 1 << 2;
        /// Single writes may be durable when answered.
        const SEND_FUA = 1 << 3;
        /// The medium rotates.
        const ROTATIONAL = 1 << 4;
        /// Trims are understood.
        const SEND_TRIM = 1 << 5;
        /// Zeroes are written without sending them.
        const SEND_WRITE_ZEROES = 1 << 6;
        /// Reads may be asked to come in one chunk.
        const SEND_DF = 1 << 7;
        /// Several connections see the same, also what a flush covers.
        const CAN_MULTI_CONN = 1 << 8;
        /// Ranges may be loaded ahead.
        const SEND_CACHE = 1 << 10;
        /// Zeroes may be asked to be fast or fail.
        const SEND_FAST_ZERO = 1 << 11;
        /// Block status may name its contexts.
        const BLOCK_STATUS_PAYLOAD = 1 << 12;
    }
}

/// Size and abilities of an export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Export {
    /// Its length in bytes.
    pub size: u64,
    /// Its abilities; unknown flags are kept, and to be ignored.
    pub flags: TransmissionFlags,
}

impl Export {
    /// The length of the answer to an export name, without zeroes.
    pub const LENGTH: usize = 10;
    /// The zeroes behind the answer to an export name, unless the client does not want them.
    pub const ZEROES: usize = 124;

    /// As bytes: the answer to an export name, and the content of an information.
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.size.to_be_bytes());
        bytes[8..].copy_from_slice(&self.flags.bits().to_be_bytes());
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "export information");
        let (size, flags) = (at.u64()?, at.u16()?);
        at.end()?;
        Ok(Self { size, flags: TransmissionFlags::from_bits_retain(flags) })
    }
}

/// The sizes and addresses of requests that an export takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of this power of two, 65,536 at most.
    pub minimum: u32,
    /// Multiples of this power of two cost least.
    pub preferred: u32,
    /// No payload of a request may be longer.
    pub maximum: u32,
}

impl BlockSizes {
    /// Their length.
    pub const LENGTH: usize = 12;

    /// In force where a server says nothing.
    pub const DEFAULT: Self =
        Self { minimum: 1, preferred: 4096, maximum: super::PORTABLE_PAYLOAD };

    /// As bytes.
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&self.minimum.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.preferred.to_be_bytes());
        bytes[8..].copy_from_slice(&self.maximum.to_be_bytes());
        bytes
    }

    /// From bytes; sizes that the protocol does not permit are an error.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "block sizes");
        let sizes = Self { minimum: at.u32()?, preferred: at.u32()?, maximum: at.u32()? };
        at.end()?;
        let refuse = |what, found: u32| Err(ProtocolError::Value { what, found: found.into() });
        if !sizes.minimum.is_power_of_two() || sizes.minimum > 1 << 16 {
            return refuse("minimum block size", sizes.minimum);
        }
        if !sizes.preferred.is_power_of_two() || sizes.preferred < sizes.minimum.max(512) {
            return refuse("preferred block size", sizes.preferred);
        }
        if sizes.maximum < sizes.preferred {
            return refuse("maximum payload size", sizes.maximum);
        }
        Ok(sizes)
    }
}
