//! Big-endian fields, one after the other.

use super::{MAX_STRING, ProtocolError};

/// A place in a message that is decoded.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// At the start of the message `what`.
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(super) fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.array().map(u64::from_be_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let Some((taken, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(ProtocolError::Short { what: self.what });
        };
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], ProtocolError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            return Err(ProtocolError::Short { what: self.what });
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len()
    }

    /// A string with its length of 32 bits in front.
    pub(super) fn counted_text(&mut self, what: &'static str) -> Result<String, ProtocolError> {
        let length = self.u32()?;
        // A length that does not fit is longer than the message, too.
        let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        text(bytes, what)
    }

    /// The message ends here.
    pub(super) fn end(self) -> Result<(), ProtocolError> {
        match self.left() {
            0 => Ok(()),
            left => Err(ProtocolError::Trailing { what: self.what, left }),
        }
    }

    /// The magic number of the message.
    pub(super) fn magic<N: Into<u64> + PartialEq + Copy>(
        &mut self,
        found: N,
        wanted: N,
    ) -> Result<(), ProtocolError> {
        if found == wanted {
            return Ok(());
        }
        Err(ProtocolError::Magic { what: self.what, found: found.into() })
    }
}

/// A string as the protocol permits it.
pub(super) fn text(bytes: &[u8], what: &'static str) -> Result<String, ProtocolError> {
    check_length(bytes.len(), what)?;
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(ProtocolError::Text { what }),
    }
}

/// Appends a string; its length must be in front or follow from that of the message.
pub(super) fn put_text(
    text: &str,
    what: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    check_length(text.len(), what)?;
    if text.contains('\0') {
        return Err(ProtocolError::Text { what });
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Appends a string with its length of 32 bits in front.
pub(super) fn put_counted_text(
    text: &str,
    what: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    out.extend_from_slice(&length(text.len(), what)?.to_be_bytes());
    put_text(text, what, out)
}

/// A length as 32 bits.
pub(super) fn length(length: usize, what: &'static str) -> Result<u32, ProtocolError> {
    u32::try_from(length).map_err(|_| ProtocolError::TooLong {
        what,
        length: length as u64,
        limit: u32::MAX.into(),
    })
}

fn check_length(length: usize, what: &'static str) -> Result<(), ProtocolError> {
    if length > MAX_STRING {
        let (length, limit) = (length as u64, MAX_STRING as u64);
        return Err(ProtocolError::TooLong { what, length, limit });
    }
    Ok(())
}
