//! Addresses on a device, in 512-byte units.

use std::fmt;
use std::ops::Range;

/// Bytes in a sector, the unit of addresses and lengths of a device.
///
/// This is the fixed unit of the interface (as in Linux), not the physical sector size of a disk.
pub const SECTOR_SIZE: u64 = 512;

/// A sector number, or a count of sectors, in units of [`SECTOR_SIZE`] bytes.
///
/// The byte offset of every value fits `u64` only when it is at most [`Sector::MAX`]; conversions
/// to bytes are therefore checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

impl Sector {
    /// The first sector of a device.
    pub const ZERO: Self = Self(0);

    /// The largest value whose byte offset fits a file offset (`i64`).
    pub const MAX: Self = Self(i64::MAX as u64 / SECTOR_SIZE);

    /// The sector that starts at byte `offset`; `None` when the offset is inside a sector.
    #[must_use]
    pub const fn from_bytes(offset: u64) -> Option<Self> {
        if offset.is_multiple_of(SECTOR_SIZE) { Some(Self(offset / SECTOR_SIZE)) } else { None }
    }

    /// The number of sectors that `bytes` bytes touch, counting a last partial one.
    #[must_use]
    pub const fn covering(bytes: u64) -> Self {
        Self(bytes.div_ceil(SECTOR_SIZE))
    }

    /// The byte offset of this sector; `None` beyond [`Sector::MAX`].
    #[must_use]
    pub const fn to_bytes(self) -> Option<u64> {
        if self.0 <= Self::MAX.0 { Some(self.0 * SECTOR_SIZE) } else { None }
    }

    /// This sector plus `sectors`; `None` on overflow of [`Sector::MAX`].
    #[must_use]
    pub const fn checked_add(self, sectors: Self) -> Option<Self> {
        match self.0.checked_add(sectors.0) {
            Some(sum) if sum <= Self::MAX.0 => Some(Self(sum)),
            _ => None,
        }
    }

    /// This sector minus `sectors`; `None` below zero.
    #[must_use]
    pub const fn checked_sub(self, sectors: Self) -> Option<Self> {
        match self.0.checked_sub(sectors.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }
}

impl fmt::Display for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether two ranges of sectors share one.
pub(crate) fn overlap(a: &Range<Sector>, b: &Range<Sector>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_sectors_convert_both_ways() {
        assert_eq!(Sector::from_bytes(1024), Some(Sector(2)));
        assert_eq!(Sector::from_bytes(1023), None);
        assert_eq!(Sector(3).to_bytes(), Some(1536));
        assert_eq!(Sector::covering(513), Sector(2));
        assert_eq!(Sector::covering(0), Sector::ZERO);
    }

    #[test]
    fn arithmetic_ends_at_the_largest_file_offset() {
        assert_eq!(Sector::MAX.checked_add(Sector(1)), None);
        assert_eq!(Sector(u64::MAX).checked_add(Sector(1)), None);
        assert_eq!(Sector(u64::MAX).to_bytes(), None);
        assert!(Sector::MAX.to_bytes().is_some_and(|bytes| bytes <= i64::MAX as u64));
        assert_eq!(Sector(1).checked_sub(Sector(2)), None);
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let range = |start, end| Sector(start)..Sector(end);
        assert!(!overlap(&range(0, 4), &range(4, 8)));
        assert!(overlap(&range(0, 5), &range(4, 8)));
        assert!(!overlap(&range(3, 3), &range(3, 8)));
    }
}
