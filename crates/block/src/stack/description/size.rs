//! How long the leaves of a device are that has to hold so many bytes.

use thiserror::Error;

use super::tree::{Description, LeafDescription};
use crate::units::SECTOR_SIZE;

/// Lengths of new files are multiples of this many bytes, so that direct I/O reaches their end.
const UNIT: u64 = 4096;

/// A part of a device whose length is given is too short for its share.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{what} has {available} bytes, it needs {needed}")]
pub struct NoRoom {
    /// The part, as in the description.
    pub what: String,
    /// Bytes it has.
    pub available: u64,
    /// Bytes it should have at least.
    pub needed: u64,
}

/// The lengths of the leaves of a device, some of which are given: block devices and network disks
/// have one, files yet to be made may have one as an option.
#[derive(Clone, Debug)]
pub struct Allotment<'d> {
    device: &'d Description,
    /// In the order of [`Description::leaves`].
    given: Vec<Option<u64>>,
}

impl<'d> Allotment<'d> {
    /// The lengths of the leaves of `device`; `given` tells those of leaves that have one already.
    pub fn new(
        device: &'d Description,
        mut given: impl FnMut(LeafDescription<'_>) -> Option<u64>,
    ) -> Self {
        let given = device.leaves().into_iter().map(|leaf| given(leaf).or(leaf.size())).collect();
        Self { device, given }
    }

    /// Bytes that the device can hold, if the lengths of all its leaves are given.
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        capacity(self.device, &self.given)
    }

    /// Length in bytes of every leaf, in the order of [`Description::leaves`], so that the device
    /// holds `bytes` bytes. What a linear device needs besides its given legs is divided evenly
    /// over the others.
    ///
    /// # Errors
    /// When a given length is too short.
    pub fn lengths(&self, bytes: u64) -> Result<Vec<u64>, NoRoom> {
        let mut lengths = Vec::with_capacity(self.given.len());
        allot(self.device, bytes, &self.given, &mut lengths)?;
        Ok(lengths)
    }
}

/// Each leg with its part of `given`.
fn parts<'d, 'g>(
    device: &'d Description,
    mut given: &'g [Option<u64>],
) -> impl Iterator<Item = (&'d Description, &'g [Option<u64>])> {
    device.legs().iter().map(move |leg| {
        let (here, rest) = given.split_at(leg.leaves().len());
        given = rest;
        (leg, here)
    })
}

fn capacity(device: &Description, given: &[Option<u64>]) -> Option<u64> {
    let mut legs = parts(device, given).map(|(leg, given)| capacity(leg, given));
    match device {
        // As a device counts: a last partial sector is one.
        Description::File(_) | Description::Network(_) => {
            given[0]?.checked_next_multiple_of(SECTOR_SIZE)
        }
        Description::Linear(_) => legs.try_fold(0u64, |sum, leg| sum.checked_add(leg?)),
        Description::Delay { .. } => legs.next().flatten(),
        // Its bytes are those that are made of what is on it.
        Description::Set { .. } => Some(0),
        Description::Mirror(_) => legs.collect::<Option<Vec<_>>>()?.into_iter().min(),
        Description::Stripe { chunk, legs: all } => {
            let smallest = legs.collect::<Option<Vec<_>>>()?.into_iter().min()?;
            (smallest - smallest % chunk).checked_mul(all.len() as u64)
        }
    }
}

fn allot(
    device: &Description,
    bytes: u64,
    given: &[Option<u64>],
    lengths: &mut Vec<u64>,
) -> Result<(), NoRoom> {
    if let Some(available) = capacity(device, given)
        && available < bytes
    {
        let what = device.to_string();
        return Err(NoRoom { what, available, needed: bytes });
    }
    let each = match device {
        Description::File(_) | Description::Network(_) => {
            lengths.push(given[0].unwrap_or_else(|| round_up(bytes, UNIT)));
            return Ok(());
        }
        Description::Mirror(_) | Description::Delay { .. } | Description::Set { .. } => bytes,
        Description::Stripe { chunk, legs } => round_up(bytes.div_ceil(legs.len() as u64), *chunk),
        Description::Linear(_) => return allot_linear(device, bytes, given, lengths),
    };
    parts(device, given).try_for_each(|(leg, given)| allot(leg, each, given, lengths))
}

fn allot_linear(
    device: &Description,
    bytes: u64,
    given: &[Option<u64>],
    lengths: &mut Vec<u64>,
) -> Result<(), NoRoom> {
    let legs: Vec<_> =
        parts(device, given).map(|(leg, given)| (leg, given, capacity(leg, given))).collect();
    let fixed = legs.iter().fold(0u64, |sum, (.., leg)| sum.saturating_add(leg.unwrap_or(0)));
    let open = legs.iter().filter(|(.., leg)| leg.is_none()).count() as u64;
    // A leg that gets nothing would not be a device.
    let each = round_up(bytes.saturating_sub(fixed).div_ceil(open.max(1)).max(1), UNIT);
    legs.into_iter()
        .try_for_each(|(leg, given, fixed)| allot(leg, fixed.unwrap_or(each), given, lengths))
}

/// The next multiple of `unit`; a size without one is refused by every file system.
fn round_up(bytes: u64, unit: u64) -> u64 {
    bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX)
}
