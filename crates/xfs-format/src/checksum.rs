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

/// The first of `lens`, which ascend, whose bytes have the checksum in the field at `offset`; lengths
/// that are not there have not. The bytes are read once.
#[must_use]
pub fn matching_len(
    bytes: &[u8],
    offset: usize,
    lens: impl IntoIterator<Item = usize>,
) -> Option<usize> {
    let stored = u32::from_le_bytes(bytes.get(offset..offset + FIELD)?.try_into().ok()?);
    let crc = crc32c::crc32c(&bytes[..offset]);
    let (mut crc, mut at) = (crc32c::crc32c_append(crc, &[0; FIELD]), offset + FIELD);
    lens.into_iter().find(|len| {
        let Some(more) = bytes.get(at..*len) else { return false };
        (crc, at) = (crc32c::crc32c_append(crc, more), *len);
        crc == stored
    })
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

    #[test]
    fn a_length_is_found_by_the_checksum() {
        let mut bytes: Vec<u8> = (0..=255).cycle().take(4096).collect();
        stamp(&mut bytes[..2048], 100);
        assert_eq!(matching_len(&bytes, 100, [512, 1024, 2048, 4096, 8192]), Some(2048));
        assert_eq!(matching_len(&bytes, 100, [512, 1024, 4096, 8192]), None);
        assert_eq!(matching_len(&bytes[..102], 100, [102]), None);
    }
}
