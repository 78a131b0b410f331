//! The checks that every device passes.
//!
//! A device's tests call [`check`] with a function that makes fresh devices. A failed check panics,
//! as an assertion in a test does. [`replay()`] alone is for property tests.

mod answers;
mod data;
mod replay;
mod unit;

use std::sync::Arc;

pub use replay::{Step, replay};

use crate::{BlockDevice, Sector};
use unit::Unit;

/// Makes a device of the given number of sectors that reads as zeroes.
pub type MakeDevice<'a> = &'a dyn Fn(Sector) -> Arc<dyn BlockDevice>;

/// Runs every check.
///
/// # Panics
/// When the device breaks its contract.
pub fn check(make: MakeDevice<'_>) {
    let suite = Suite { make, unit: Unit::of(&*make(Sector(4096))) };
    suite.histories();
    suite.check_data();
    suite.check_answers();
}

/// A kind of device under test.
struct Suite<'a> {
    make: MakeDevice<'a>,
    unit: Unit,
}

impl Suite<'_> {
    /// A fresh device of `units` units.
    fn device(&self, units: u64) -> Arc<dyn BlockDevice> {
        (self.make)(self.unit.sector(units))
    }

    /// Random histories, from a thread that leaves the device's queues to others and from one that
    /// has claimed one.
    fn histories(&self) {
        for seed in 0..16 {
            let device = self.device(256);
            let claim = (seed % 2 == 1).then(|| device.claim().expect("a queue of its own"));
            replay(&device, &replay::random_steps(seed, 400, 256));
            drop(claim);
        }
    }
}
