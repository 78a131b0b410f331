//! Where partitions lie.

use super::DiskError;
use undercroft_block::partition::gpt_bytes;

/// Partitions start and end at multiples of this, which suits every disk.
pub(super) const UNIT: u64 = 1 << 20;

/// A range of bytes of the disk, both ends multiples of [`UNIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) length: u64,
}

/// The places of all partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Length of the disk.
    pub(crate) bytes: u64,
    /// In the order of the partitions.
    pub(crate) places: Vec<Place>,
}

/// The bytes behind the first unit that partitions of a disk of `bytes` bytes can take.
pub(super) fn room(bytes: u64, block_size: u64) -> u64 {
    let end = bytes.saturating_sub(gpt_bytes(block_size)) / UNIT * UNIT;
    end.saturating_sub(UNIT)
}

/// Bytes of a disk whose partitions take `taken` bytes.
fn disk_bytes(taken: u64) -> Option<u64> {
    taken.checked_add(2 * UNIT)
}

/// Bytes that a partition with so much in it takes; `None` beyond what can be counted.
pub(super) fn rounded(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(UNIT)
}

/// Places partitions of these names and lengths one behind the other on a disk that has `disk`
/// bytes, or as many as it needs.
pub(super) fn place(
    partitions: &[(String, u64)],
    disk: Option<u64>,
    block_size: u64,
) -> Result<Layout, DiskError> {
    let too_large = || DiskError::TooLarge;
    let mut end = UNIT;
    let mut places = Vec::with_capacity(partitions.len());
    for (_, bytes) in partitions {
        let length = rounded(*bytes).ok_or_else(too_large)?;
        places.push(Place { start: end, length });
        end = end.checked_add(length).ok_or_else(too_large)?;
    }
    let needed = disk_bytes(end - UNIT).filter(|bytes| *bytes <= i64::MAX as u64);
    let needed = needed.ok_or_else(too_large)?;
    let Some(bytes) = disk else { return Ok(Layout { bytes: needed, places }) };
    let limit = UNIT + room(bytes, block_size);
    let over = places.iter().zip(partitions).zip(1..);
    for ((place, (name, _)), number) in over {
        if place.start + place.length > limit {
            return Err(DiskError::DoesNotFit {
                number,
                name: name.clone(),
                length: place.length,
                start: place.start,
                disk: bytes,
                needed,
            });
        }
    }
    Ok(Layout { bytes, places })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(lengths: &[u64]) -> Vec<(String, u64)> {
        lengths.iter().map(|length| ("p".to_owned(), *length)).collect()
    }

    #[test]
    fn partitions_follow_each_other_in_units() {
        let layout = place(&partitions(&[1, UNIT, UNIT + 1]), None, 512).unwrap();
        let places: Vec<_> = layout.places.iter().map(|one| (one.start, one.length)).collect();
        assert_eq!(places, [(UNIT, UNIT), (2 * UNIT, UNIT), (3 * UNIT, 2 * UNIT)]);
        assert_eq!(layout.bytes, 6 * UNIT);
    }

    #[test]
    fn a_disk_that_is_just_large_enough_will_do() {
        let three = partitions(&[UNIT, UNIT, 5]);
        let needed = place(&three, None, 512).unwrap().bytes;
        // The copy of the table takes less than the unit it has.
        for bytes in [needed, needed - UNIT + gpt_bytes(512)] {
            assert_eq!(place(&three, Some(bytes), 512).unwrap().bytes, bytes);
            assert_eq!(room(bytes, 512), 3 * UNIT);
        }
        let error = place(&three, Some(needed - UNIT), 512).unwrap_err();
        let DiskError::DoesNotFit { number, disk, needed: told, .. } = error else { panic!() };
        assert_eq!((number, disk, told), (3, needed - UNIT, needed));
    }

    #[test]
    fn lengths_beyond_all_disks_are_refused() {
        for lengths in [&[u64::MAX][..], &[1 << 62, 1 << 62], &[i64::MAX as u64]] {
            let result = place(&partitions(lengths), None, 512);
            assert!(matches!(result, Err(DiskError::TooLarge)));
        }
    }
}
