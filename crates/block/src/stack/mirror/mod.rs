//! The same on several devices.
//!
//! - **Writes** (also zeroes, discards and flushes) go to every leg in use and are answered when
//!   all have. A leg that fails one which another leg did is dropped: it is not read or written any
//!   more, since its data are out of date. The last leg is never dropped; its errors are those of
//!   the mirror.
//! - **Reads** go to one leg: that with the least work, unless the read goes on where another one
//!   ended lately. One that fails is done again on the other legs before it fails.
//! - **Order.** Bios that overlap, one of them modifying, do not go on before the earlier one was
//!   answered. So all legs see them in one order, and a read that is repeated does not meet data
//!   written after it. A bio that conflicts with one that another thread holds in its plug waits
//!   for that plug to be flushed.
//! - **Resynchronising** copies to a leg that was dropped, or that was added without the contents,
//!   the data of the others, a region at a time, while bios go on ([`Mirror::resynchronise`]).

mod entry;
mod event;
mod legs;
mod resync;
mod shared;
mod transfer;

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::StackError;
use super::legs::Legs;
use crate::bio::{Bio, Operation, Reason};
use crate::device::{Below, BlockDevice, Layer, Part, Stacked};
use crate::units::{Limits, SECTOR_SIZE, Sector};
use entry::{Entry, Ticket};
use legs::Members;
use shared::Shared;

pub use event::MirrorEvent;
pub use legs::{LegState, LegStatus};
pub use resync::{ResyncError, ResyncProgress};

/// The legs as one device that survives as long as one of them does.
///
/// Of legs of unequal size, as much is used as the smallest has.
pub struct Mirror {
    shared: Arc<Shared>,
    name: String,
    capacity: Sector,
}

impl Mirror {
    /// Most legs of a mirror.
    pub const MAX_LEGS: usize = 32;

    /// A mirror of `legs`, which hold the same, or nothing that matters.
    ///
    /// # Errors
    /// Without legs, with more than [`MAX_LEGS`](Self::MAX_LEGS), or with one sector of a device in
    /// two of them.
    pub fn new(legs: Vec<Arc<dyn BlockDevice>>) -> Result<Self, StackError> {
        Self::with_stale(legs, &[])
    }

    /// A mirror of `legs`, of which those with numbers in `stale` do not hold the data of the
    /// others: they are not used until they are [resynchronised](Self::resynchronise).
    ///
    /// # Errors
    /// As [`new`](Self::new), and when all legs are stale, or one of them is shorter than a leg
    /// that is not.
    pub fn with_stale(
        legs: Vec<Arc<dyn BlockDevice>>,
        stale: &[usize],
    ) -> Result<Self, StackError> {
        let legs = Legs::new(legs)?;
        let count = legs.devices().len();
        if count > Self::MAX_LEGS {
            return Err(StackError::TooManyLegs { count, most: Self::MAX_LEGS });
        }
        let members = Members::new(count, stale).ok_or(StackError::AllStale)?;
        let capacity = capacity(&legs, stale)?;
        let name = legs.name("mirror");
        let (order, observer) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { legs, members, order, observer });
        Ok(Self { shared, name, capacity })
    }

    /// Calls `observer` with every event from now on, in the thread where it happens, which may be
    /// completing bios: it must not block.
    pub fn observe(&self, observer: impl Fn(&MirrorEvent) + Send + Sync + 'static) {
        *self.shared.observer.lock() = Some(Arc::new(observer));
    }

    /// The state of every leg, in order.
    #[must_use]
    pub fn status(&self) -> Vec<LegStatus> {
        self.shared.members.status()
    }
}

/// What the smallest leg has in whole blocks; stale ones must hold as much as the others.
fn capacity(legs: &Legs, stale: &[usize]) -> Result<Sector, StackError> {
    let capacities: Vec<Sector> = legs.capacities(legs.limits().block_bytes).collect();
    let live = capacities.iter().enumerate().filter(|(leg, _)| !stale.contains(leg));
    let needed = live.map(|(_, sectors)| *sectors).min().unwrap_or(Sector::ZERO);
    let bytes = |sectors: Sector| sectors.to_bytes().unwrap_or(u64::MAX);
    match capacities.iter().position(|sectors| *sectors < needed) {
        None => Ok(needed),
        Some(leg) => Err(StackError::ShortLeg {
            leg: legs.devices()[leg].name().into(),
            found: bytes(capacities[leg]),
            needed: bytes(needed),
        }),
    }
}

impl BlockDevice for Mirror {
    fn name(&self) -> &str {
        &self.name
    }

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn limits(&self) -> Limits {
        // A leg that cannot clone would count as one that failed.
        Limits { clones_ranges: false, ..self.shared.legs.limits() }
    }

    fn is_read_only(&self) -> bool {
        self.shared.legs.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for Mirror {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        let Some(bio) = bio.admit(self) else { return };
        let Some(bio) = self.aligned(bio) else { return };
        let shared = &self.shared;
        let mut submit = |leg: usize, bio| below.submit(shared.leg(leg), bio);
        let mut order = shared.order.lock();
        if bio.operation() == Operation::Flush && !order.holds_back() {
            drop(order);
            return shared.start_fan_out(None, bio, &mut submit);
        }
        let entered = order.enter(Entry::new(bio));
        drop(order);
        if let Some(entry) = entered {
            shared.start(entry, &mut submit);
        }
    }

    fn parts<'d>(&'d self, sectors: Range<Sector>, visit: &mut dyn FnMut(Part<'d>)) {
        self.shared.legs.same_parts(&sectors, visit);
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        self.shared.legs.devices()
    }

    fn wait_answered(&self) {
        let all = Sector::ZERO..self.capacity;
        if !all.is_empty() && !self.shared.order.lock().is_empty() {
            let ticket: Ticket = self.shared.exclude(all);
            self.shared.leave(&ticket);
        }
    }
}

impl Mirror {
    /// Refuses what one leg could refuse and another not, which would not be a fault of the leg.
    fn aligned(&self, bio: Bio) -> Option<Bio> {
        let limits = self.limits();
        let unit = if bio.is_memory_aligned(limits.memory_alignment) {
            let sectors = limits.block_bytes / SECTOR_SIZE;
            let whole = bio.sector().0.is_multiple_of(sectors)
                && bio.length().is_multiple_of(limits.block_bytes);
            (!whole).then_some(limits.block_bytes)
        } else {
            Some(limits.memory_alignment as u64)
        };
        match unit {
            None => Some(bio),
            Some(unit) => {
                bio.fail(&self.name, Reason::Misaligned { unit });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
