//! The 512-byte header: ustar (POSIX.1-1988), GNU and v7 (GNU tar manual, "Basic Tar Format").

use super::error::Problem;
use crate::{DataRange, Device};
use std::ops::Range;

/// Size of a header and the unit to which everything in an archive is padded.
pub(super) const BLOCK: usize = 512;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const TYPE: usize = 156;
const LINK_NAME: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const MAJOR: Range<usize> = 329..337;
const MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;
/// GNU sparse headers: four ranges of two 12-byte numbers, a flag that more follow, the file's size.
const GNU_SPARSE: Range<usize> = 386..482;
const GNU_SPARSE_MORE: usize = 482;
const GNU_REAL_SIZE: Range<usize> = 483..495;
/// Blocks that continue a GNU sparse map: 21 ranges, then the flag that more follow.
const CONTINUATION: Range<usize> = 0..504;
const CONTINUATION_MORE: usize = 504;
/// Bytes of a range in a GNU sparse map.
const SPARSE_RANGE: usize = 24;

/// Which fields a header has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    V7,
    Ustar,
    Gnu,
}

/// A header whose checksum is right.
pub(super) struct Header<'a> {
    bytes: &'a [u8; BLOCK],
    format: Format,
}

impl<'a> Header<'a> {
    /// Checks the sum; historic writers added up signed bytes, so that is accepted as well.
    pub(super) fn new(bytes: &'a [u8; BLOCK]) -> Result<Self, Problem> {
        // The field itself counts as spaces.
        let spaces = CHECKSUM.len() as u64 * u64::from(b' ');
        let unsigned = sum(bytes) - sum(&bytes[CHECKSUM]) + spaces;
        let stored = unsigned_number("chksum", &bytes[CHECKSUM])?;
        if stored != unsigned && stored != unsigned.wrapping_sub(signed_excess(bytes)) {
            return Err(Problem::Checksum { stored, computed: unsigned });
        }
        let format = match &bytes[MAGIC] {
            b"ustar  \0" => Format::Gnu,
            magic if magic.starts_with(b"ustar\0") => Format::Ustar,
            _ => Format::V7,
        };
        Ok(Self { bytes, format })
    }

    /// The type of the entry: `0` for a regular file and so on.
    pub(super) fn entry_type(&self) -> u8 {
        self.bytes[TYPE]
    }

    /// The name, with the prefix of ustar.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = text(&self.bytes[NAME]);
        let prefix = text(&self.bytes[PREFIX]);
        if self.format == Format::Ustar && !prefix.is_empty() {
            [prefix, b"/", name].concat()
        } else {
            name.to_vec()
        }
    }

    pub(super) fn link_name(&self) -> &'a [u8] {
        text(&self.bytes[LINK_NAME])
    }

    /// Permission bits; some writers add the file type, which is left out.
    pub(super) fn mode(&self) -> Result<u16, Problem> {
        let mode = number("mode", &self.bytes[MODE])?;
        Ok((mode & 0o7777) as u16)
    }

    pub(super) fn uid(&self) -> Result<u32, Problem> {
        self.small("uid", UID)
    }

    pub(super) fn gid(&self) -> Result<u32, Problem> {
        self.small("gid", GID)
    }

    pub(super) fn size(&self) -> Result<u64, Problem> {
        unsigned_number("size", &self.bytes[SIZE])
    }

    /// Seconds since 1970.
    pub(super) fn mtime(&self) -> Result<i64, Problem> {
        number("mtime", &self.bytes[MTIME])
    }

    pub(super) fn device(&self) -> Result<Device, Problem> {
        if self.format == Format::V7 {
            return Ok(Device { major: 0, minor: 0 });
        }
        Ok(Device { major: self.small("devmajor", MAJOR)?, minor: self.small("devminor", MINOR)? })
    }

    /// The ranges of a GNU sparse file in this header, and whether a continuation block follows.
    pub(super) fn gnu_sparse(&self) -> Result<(Vec<DataRange>, bool), Problem> {
        let mut ranges = Vec::new();
        sparse_ranges(&self.bytes[GNU_SPARSE], &mut ranges)?;
        Ok((ranges, self.bytes[GNU_SPARSE_MORE] != 0))
    }

    /// The size of a GNU sparse file with its holes.
    pub(super) fn gnu_real_size(&self) -> Result<u64, Problem> {
        unsigned_number("realsize", &self.bytes[GNU_REAL_SIZE])
    }

    fn small(&self, field: &'static str, range: Range<usize>) -> Result<u32, Problem> {
        let bytes = &self.bytes[range];
        u32::try_from(number(field, bytes)?)
            .map_err(|_| Problem::Number { field, value: bytes.to_vec() })
    }
}

/// Adds the ranges of a continuation block; whether another one follows.
pub(super) fn continue_gnu_sparse(
    block: &[u8; BLOCK],
    ranges: &mut Vec<DataRange>,
) -> Result<bool, Problem> {
    sparse_ranges(&block[CONTINUATION], ranges)?;
    Ok(block[CONTINUATION_MORE] != 0)
}

fn sparse_ranges(bytes: &[u8], ranges: &mut Vec<DataRange>) -> Result<(), Problem> {
    for range in bytes.chunks_exact(SPARSE_RANGE) {
        // Unused places are empty.
        if range[0] == 0 {
            break;
        }
        let (offset, length) = range.split_at(SPARSE_RANGE / 2);
        ranges.push(DataRange {
            offset: unsigned_number("sparse offset", offset)?,
            length: unsigned_number("sparse numbytes", length)?,
        });
    }
    Ok(())
}

/// The sum of at most a block of bytes, whole words of them: eight at a time, in sums of 16 bits, which
/// are large enough for two of each word.
fn sum(bytes: &[u8]) -> u64 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    debug_assert!(bytes.len() <= BLOCK && bytes.len().is_multiple_of(8));
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let sums = words.fold(0, |sums, word| sums + (word & EVEN) + (word >> 8 & EVEN));
    (0..4).map(|part| sums >> (16 * part) & 0xffff).sum()
}

/// The bytes before the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or(field)
}

fn unsigned_number(field: &'static str, bytes: &[u8]) -> Result<u64, Problem> {
    u64::try_from(number(field, bytes)?)
        .map_err(|_| Problem::Number { field, value: bytes.to_vec() })
}

/// A number in octal digits, or in base 256 when the first byte has its top bit set. An empty field
/// is 0.
fn number(field: &'static str, bytes: &[u8]) -> Result<i64, Problem> {
    let value = match bytes.first() {
        Some(first) if first & 0x80 != 0 => base_256(bytes),
        _ => octal(bytes),
    };
    value.ok_or_else(|| Problem::Number { field, value: bytes.to_vec() })
}

fn octal(bytes: &[u8]) -> Option<i64> {
    // No field is so long that this overflows.
    debug_assert!(bytes.len() <= 12);
    let mut value = 0;
    for &byte in bytes.trim_ascii_start() {
        match byte {
            b'0'..=b'7' => value = value << 3 | i64::from(byte - b'0'),
            0 | b' ' => break,
            _ => return None,
        }
    }
    Some(value)
}

/// Two's complement, big-endian; the top bit of the first byte marks the encoding and the next is the
/// sign.
fn base_256(bytes: &[u8]) -> Option<i64> {
    let negative = bytes[0] & 0x40 != 0;
    let start = if negative { -1i64 } else { 0 };
    bytes.iter().enumerate().try_fold(start, |value, (index, &byte)| {
        let byte = if index == 0 && !negative { byte & 0x3f } else { byte };
        Some(value.checked_mul(256)? | i64::from(byte))
    })
}

/// By how much the sum of the bytes outside the checksum field exceeds that of the same bytes taken
/// as signed, as some old writers did.
fn signed_excess(bytes: &[u8; BLOCK]) -> u64 {
    let high = |bytes: &[u8]| bytes.iter().filter(|byte| **byte >= 0x80).count() as u64;
    256 * (high(bytes) - high(&bytes[CHECKSUM]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_numbers_have_spaces_and_nul_around_them() {
        for (bytes, value) in [
            (&b"0000644\0"[..], 0o644),
            (b"   644 \0", 0o644),
            (b"\0\0\0\0\0\0\0\0", 0),
            (b"77777777777\0", 0o77_777_777_777),
            (b"777777777777", 0o777_777_777_777),
        ] {
            assert_eq!(number("size", bytes).unwrap(), value, "{bytes:?}");
        }
        for bytes in [&b"000064x\0"[..], b"8       ", b"-1      "] {
            assert!(number("size", bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn base_256_numbers_are_signed_and_checked() {
        let mut field = [0u8; 12];
        field[0] = 0x80;
        field[4..].copy_from_slice(&(1i64 << 40).to_be_bytes());
        assert_eq!(number("size", &field).unwrap(), 1 << 40);
        assert_eq!(number("mtime", &[0xff; 12]).unwrap(), -1);
        assert!(unsigned_number("size", &[0xff; 12]).is_err());
        field[3] = 1;
        assert!(number("size", &field).is_err(), "2^64 and more");
        assert_eq!(number("uid", &[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).unwrap(), 0xffff_ffff);
    }

    #[test]
    fn a_wrong_sum_is_told_with_both_sums() {
        let mut bytes = [0u8; BLOCK];
        bytes[CHECKSUM].copy_from_slice(b"0000400\0");
        assert!(Header::new(&bytes).is_ok());
        bytes[0] = 3;
        let problem = Header::new(&bytes).err().unwrap();
        assert!(matches!(problem, Problem::Checksum { stored: 256, computed: 259 }), "{problem}");
        bytes[0] = 0xff;
        bytes[CHECKSUM].copy_from_slice(b"0000377\0");
        assert!(Header::new(&bytes).is_ok(), "signed sum");
    }
}
