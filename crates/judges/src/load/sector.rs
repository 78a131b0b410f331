//! The contents of files under load: each sector says of which file it is, where in it, and which
//! version; the rest of it follows from these.

use crate::random::Random;

/// Bytes of a sector, the smallest piece that is written as a whole.
pub(super) const SECTOR: usize = 512;

/// A sector as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Zeros: never written, or given up.
    Zeros,
    /// A version of a sector of a file.
    Version { file: u64, index: u64, version: u64 },
    /// Anything else: a torn or foreign sector.
    Other,
}

/// Writes a sector.
pub(super) fn fill(sector: &mut [u8], file: u64, index: u64, version: u64) {
    let mut words = [file, index, version].into_iter();
    let mut filler = Random::new(file ^ index.rotate_left(20) ^ version.rotate_left(40));
    for word in sector.chunks_exact_mut(8) {
        word.copy_from_slice(&words.next().unwrap_or_else(|| filler.bits()).to_le_bytes());
    }
}

/// `count` sectors of a file from `first` on, all of one version.
pub(super) fn sectors(file: u64, first: u64, count: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(0) * SECTOR];
    for (sector, index) in bytes.chunks_exact_mut(SECTOR).zip(first..) {
        fill(sector, file, index, version);
    }
    bytes
}

/// What a sector holds.
pub(super) fn read(sector: &[u8]) -> Found {
    if sector.iter().all(|byte| *byte == 0) {
        return Found::Zeros;
    }
    let word = |number: usize| {
        let bytes = sector.get(number * 8..number * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let (file, index, version) = (word(0), word(1), word(2));
    let mut expected = [0; SECTOR];
    fill(&mut expected, file, index, version);
    if sector == expected { Found::Version { file, index, version } } else { Found::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_says_what_it_is() {
        let bytes = sectors(7, 3, 2, 9);
        assert_eq!(read(&bytes[..SECTOR]), Found::Version { file: 7, index: 3, version: 9 });
        assert_eq!(read(&bytes[SECTOR..]), Found::Version { file: 7, index: 4, version: 9 });
        assert_eq!(read(&[0; SECTOR]), Found::Zeros);
        // Torn in the middle: half of one version, half of the next.
        let mut torn = sectors(7, 3, 1, 10);
        torn[256..].copy_from_slice(&bytes[256..SECTOR]);
        assert_eq!(read(&torn), Found::Other);
    }
}
