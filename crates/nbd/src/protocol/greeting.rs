//! The first message of each side.

use bitflags::bitflags;

use super::ProtocolError;
use super::cursor::Cursor;

/// "NBDMAGIC".
const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// What stands there instead of [`OPTION_MAGIC`] if exports have no names.
const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// "IHAVEOPT": the magic number of options, too.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;

bitflags! {
    /// Offers of a server before any option.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct HandshakeFlags: u16 {
        /// Options are answered.
        const FIXED_NEWSTYLE = 1;
        /// The answer to an export name has no zeroes behind it, if the client wants that.
        const NO_ZEROES = 1 << 1;
    }

    /// What a client takes of [`HandshakeFlags`].
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ClientFlags: u32 {
        /// Options are answered.
        const FIXED_NEWSTYLE = 1;
        /// The answer to an export name has no zeroes behind it.
        const NO_ZEROES = 1 << 1;
    }
}

/// The first message of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Greeting {
    /// What it offers; unknown flags are kept, and to be ignored.
    pub flags: HandshakeFlags,
}

impl Greeting {
    /// Its length.
    pub const LENGTH: usize = 18;

    /// As bytes.
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&GREETING_MAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[16..].copy_from_slice(&self.flags.bits().to_be_bytes());
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "greeting");
        let magic = at.u64()?;
        at.magic(magic, GREETING_MAGIC)?;
        let style = at.u64()?;
        if style == OLD_STYLE_MAGIC {
            return Err(ProtocolError::OldStyle);
        }
        at.magic(style, OPTION_MAGIC)?;
        Ok(Self { flags: HandshakeFlags::from_bits_retain(at.u16()?) })
    }
}

impl ClientFlags {
    /// Their length.
    pub const LENGTH: usize = 4;

    /// As bytes.
    pub fn encode(self) -> [u8; Self::LENGTH] {
        self.bits().to_be_bytes()
    }

    /// From bytes; a server must not go on with flags that it does not know.
    pub fn decode(bytes: [u8; Self::LENGTH]) -> Result<Self, ProtocolError> {
        let bits = u32::from_be_bytes(bytes);
        let unknown = ProtocolError::Value { what: "client flags", found: bits.into() };
        Self::from_bits(bits).ok_or(unknown)
    }
}
