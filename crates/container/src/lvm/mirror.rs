//! Which legs of a mirror have its data.
//!
//! The metadata of a leg of the kind `raid1` begins with a superblock of the kernel. Its fields were
//! found by experiment.

use crate::field::{le32, le64};
use crate::layer_error::LayerError;
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, read_buffer};

/// What the superblock of a leg says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    legs: u32,
    number: u32,
    /// Counts the changes.
    events: u64,
    /// A bit for each leg that failed.
    failed: u64,
    /// Sectors of the leg that have the data; all if it has no end.
    recovered: u64,
    /// Sectors that are the same on all legs; all if it has no end.
    same: u64,
}

/// The state of a mirror of several legs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All legs have the same data.
    Same,
    /// This leg has the data, and the mirror is not to be changed.
    Only(usize),
}

/// Reads the superblock of a leg; `None` where there is none, as before the mirror was first used.
pub(super) fn superblock(metadata: &dyn BlockDevice) -> Result<Option<Superblock>, LayerError> {
    if metadata.capacity() == Sector::ZERO {
        return Ok(None);
    }
    let bytes = read_buffer(metadata, Sector::ZERO, SECTOR_SIZE as usize)?;
    Ok(bytes.starts_with(b"DmRd").then(|| Superblock {
        legs: le32(&bytes, 8),
        number: le32(&bytes, 12),
        events: le64(&bytes, 16),
        failed: le64(&bytes, 24),
        recovered: le64(&bytes, 32),
        same: le64(&bytes, 40),
    }))
}

/// The state by the superblocks of the legs that are there; `None` if no leg can be believed.
pub(super) fn state(legs: &[Option<Superblock>]) -> Option<State> {
    let newest = legs.iter().flatten().map(|leg| leg.events).max()?;
    let has_data = |number: usize, leg: &Superblock| {
        let is_failed = legs.iter().flatten().any(|other| {
            other.events == newest
                && other.failed & 1_u64.checked_shl(number as u32).unwrap_or(0) != 0
        });
        leg.events == newest
            && leg.number as usize == number
            && leg.recovered == u64::MAX
            && !is_failed
    };
    let sound = |(number, leg): (usize, &Option<Superblock>)| {
        leg.as_ref().is_some_and(|leg| has_data(number, leg)).then_some(number)
    };
    let first = legs.iter().enumerate().find_map(sound)?;
    let all = legs.iter().enumerate().all(|leg| sound(leg).is_some());
    let same =
        legs.iter().flatten().all(|leg| leg.same == u64::MAX && leg.legs as usize == legs.len());
    Some(if all && same { State::Same } else { State::Only(first) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leg(number: u32) -> Superblock {
        Superblock { legs: 2, number, events: 7, failed: 0, recovered: u64::MAX, same: u64::MAX }
    }

    #[test]
    fn legs_with_the_data_are_chosen() {
        let state = |one, other| state(&[one, other]);
        let (first, second) = (Some(leg(0)), Some(leg(1)));
        assert_eq!(state(first, second), Some(State::Same));
        assert_eq!(state(first, None), Some(State::Only(0)));
        assert_eq!(state(None, second), Some(State::Only(1)));
        assert_eq!(state(None, None), None);
        let old = first.map(|leg| Superblock { events: 6, ..leg });
        assert_eq!(state(old, second), Some(State::Only(1)));
        let recovering = first.map(|leg| Superblock { recovered: 1024, ..leg });
        assert_eq!(state(recovering, second), Some(State::Only(1)));
        let failed = second.map(|leg| Superblock { failed: 1, ..leg });
        assert_eq!(state(first, failed), Some(State::Only(1)));
        let differing = first.map(|leg| Superblock { same: 0, ..leg });
        assert_eq!(state(differing, second), Some(State::Only(0)));
        assert_eq!(state(second, first), None);
    }
}
