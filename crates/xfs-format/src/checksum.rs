//! CRC-32C of metadata (docs/format/checksums.md#algorithm).
//!
//! The checksum covers a whole structure with its own four bytes counted as zero, and is the one
//! field of the format that is stored little-endian.

use thiserror::Error;

const FIELD: usize = 4;

/// The stored checksum does not belong to the bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("checksum is {stored:#010x}, the bytes give {computed:#010x}")]
pub struct ChecksumError {
    /// Value found in the structure.
    pub stored: u32,
    /// Value computed over the structure.
    pub computed: u32,
}

/// Checksum of `bytes` with the field at `offset` counted as zero.
#[must_use]
pub fn compute(bytes: &[u8], offset: usize) -> u32 {
    let crc = crc32c::crc32c(&bytes[..offset]);
    let crc = crc32c::crc32c_append(crc, &[0; FIELD]);
    crc32c::crc32c_append(crc, &bytes[offset + FIELD..])
}

/// Compares the field at `offset` with the bytes.
///
/// # Errors
///
/// [`ChecksumError`] with both values when they differ.
pub fn verify(bytes: &[u8], offset: usize) -> Result<(), ChecksumError> {
    let stored = u32::from_le_bytes(crate::bytes::array(bytes, offset));
    let computed = compute(bytes, offset);
    if stored == computed { Ok(()) } else { Err(ChecksumError { stored, computed }) }
}

/// Stores the checksum of `bytes` at `offset`.
pub fn stamp(bytes: &mut [u8], offset: usize) {
    let crc = compute(bytes, offset);
    bytes[offset..offset + FIELD].copy_from_slice(&crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_counts_as_zero_and_is_little_endian() {
        let mut bytes = *b"0000123456789";
        let zeroed = crc32c::crc32c(b"\0\0\0\x00123456789");
        stamp(&mut bytes, 0);
        assert_eq!(bytes[..4], zeroed.to_le_bytes());
        assert_eq!(verify(&bytes, 0), Ok(()));
        bytes[12] ^= 1;
        assert_eq!(verify(&bytes, 0).unwrap_err().stored, zeroed);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    }
}
