//! Fields in byte slices, and edits that remember which bytes they touched. Metadata is big-endian,
//! items of the journal are little-endian.
//!
//! Offsets are constants of the format or were checked by a verifier, so the accessors index
//! directly: an offset outside the slice is a bug of the caller and panics. Code that follows a
//! number taken from the disk checks it first.

use smallvec::SmallVec;
use std::ops::Range;

/// The two bytes at `offset`, big-endian.
#[must_use]
#[inline]
pub fn be16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(array(bytes, offset))
}

/// The four bytes at `offset`, big-endian.
#[must_use]
#[inline]
pub fn be32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(array(bytes, offset))
}

/// The eight bytes at `offset`, big-endian.
#[must_use]
#[inline]
pub fn be64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(array(bytes, offset))
}

/// The two bytes at `offset`, little-endian.
#[must_use]
#[inline]
pub fn le16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array(bytes, offset))
}

/// The four bytes at `offset`, little-endian.
#[must_use]
#[inline]
pub fn le32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array(bytes, offset))
}

/// The eight bytes at `offset`, little-endian.
#[must_use]
#[inline]
pub fn le64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array(bytes, offset))
}

/// `N` bytes from `offset`.
#[must_use]
#[inline]
pub fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

/// Stores `value` at `offset`, big-endian.
#[inline]
pub fn put_be16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

/// Stores `value` at `offset`, big-endian.
#[inline]
pub fn put_be32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
}

/// Stores `value` at `offset`, big-endian.
#[inline]
pub fn put_be64(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_be_bytes());
}

/// Bytes per bit of a [`Changes`] map: the unit in which the journal logs buffers.
pub const CHANGE_UNIT: usize = 128;

/// Which parts of a buffer were changed, one bit per [`CHANGE_UNIT`] bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    words: SmallVec<[u64; 1]>,
}

impl Changes {
    /// Marks `range` (in bytes) as changed.
    #[inline]
    pub fn mark(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (first, last) = (range.start / CHANGE_UNIT, (range.end - 1) / CHANGE_UNIT);
        if self.words.len() <= last / 64 {
            self.words.resize(last / 64 + 1, 0);
        }
        for word in first / 64..=last / 64 {
            let from = first.saturating_sub(word * 64);
            let to = (last - word * 64).min(63);
            self.words[word] |= (u64::MAX >> (63 - to)) & (u64::MAX << from);
        }
    }

    /// Whether nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Adds the marks of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Forgets all marks.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The marked parts as maximal byte ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = self.next(next, 0)?;
            let end = self.next(start, u64::MAX).unwrap_or(self.words.len() * 64);
            next = end;
            Some(start * CHANGE_UNIT..end * CHANGE_UNIT)
        })
    }

    /// The first bit from `from` on that is 1; with a `flip` of ones, that is 0.
    #[inline]
    fn next(&self, from: usize, flip: u64) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.words.iter().enumerate().skip(from / 64) {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return Some(index * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// A buffer open for change; every write marks the bytes it touched.
#[derive(Debug)]
pub struct EditBytes<'a> {
    bytes: &'a mut [u8],
    changes: &'a mut Changes,
}

impl<'a> EditBytes<'a> {
    /// Opens `bytes`, whose changes are collected in `changes`.
    pub fn new(bytes: &'a mut [u8], changes: &'a mut Changes) -> Self {
        Self { bytes, changes }
    }

    /// The bytes as they are now.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// A part to be overwritten freely; all of it counts as changed.
    #[inline]
    pub fn region(&mut self, range: Range<usize>) -> &mut [u8] {
        self.changes.mark(range.clone());
        &mut self.bytes[range]
    }

    /// Stores one byte.
    #[inline]
    pub fn put_u8(&mut self, offset: usize, value: u8) {
        self.region(offset..offset + 1)[0] = value;
    }

    /// Stores `value` big-endian.
    #[inline]
    pub fn put_be16(&mut self, offset: usize, value: u16) {
        self.put_bytes(offset, &value.to_be_bytes());
    }

    /// Stores `value` big-endian.
    #[inline]
    pub fn put_be32(&mut self, offset: usize, value: u32) {
        self.put_bytes(offset, &value.to_be_bytes());
    }

    /// Stores `value` big-endian.
    #[inline]
    pub fn put_be64(&mut self, offset: usize, value: u64) {
        self.put_bytes(offset, &value.to_be_bytes());
    }

    /// Stores `value` from `offset` on.
    #[inline]
    pub fn put_bytes(&mut self, offset: usize, value: &[u8]) {
        self.region(offset..offset + value.len()).copy_from_slice(value);
    }

    /// Moves the bytes of `source` to `target` (may overlap).
    #[inline]
    pub fn copy_within(&mut self, source: Range<usize>, target: usize) {
        let len = source.len();
        self.bytes.copy_within(source, target);
        self.changes.mark(target..target + len);
    }

    /// Sets all of `range` to zero.
    #[inline]
    pub fn zero(&mut self, range: Range<usize>) {
        self.region(range).fill(0);
    }
}

/// Mixes the bits of a number so that neighbouring ones have nothing in common: the finaliser of
/// the generator SplitMix64.
#[must_use]
pub const fn mix64(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edits_mark_exactly_the_units_they_touch() {
        let (mut bytes, mut changes) = (vec![0; 65536], Changes::default());
        let mut edit = EditBytes::new(&mut bytes, &mut changes);
        edit.put_be32(126, 0x0102_0304);
        edit.put_u8(65535, 7);
        edit.copy_within(126..130, 1024);
        assert_eq!(edit.bytes()[1024..1028], [1, 2, 3, 4]);
        assert_eq!(changes.ranges().collect::<Vec<_>>(), [0..256, 1024..1152, 65408..65536]);
        changes.clear();
        assert!(changes.is_empty());
    }

    proptest! {
        /// Words and their bits one by one say the same.
        #[test]
        fn marks_and_ranges_are_those_of_single_units(
            marked in proptest::collection::vec((0_usize..520, 1_usize..200), 0..6),
        ) {
            let (mut changes, mut units) = (Changes::default(), vec![false; 1024]);
            for (first, count) in marked {
                changes.mark(first * CHANGE_UNIT + 7..(first + count) * CHANGE_UNIT);
                units[first..first + count].fill(true);
            }
            let mut found = vec![false; 1024];
            let (mut end, mut first) = (0, true);
            for range in changes.ranges() {
                prop_assert!(first || range.start > end, "maximal and ascending");
                (end, first) = (range.end, false);
                found[range.start / CHANGE_UNIT..range.end / CHANGE_UNIT].fill(true);
            }
            prop_assert_eq!(found, units);
        }
    }
}
