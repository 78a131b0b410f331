//! A device that fails where and when a test says.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bio::{Bio, Operation};
use crate::device::{Below, BlockDevice, Layer, Limits, Stacked};
use crate::sector::{Sector, overlap};

/// Which requests fail, and how. Without conditions: all, with an I/O error.
#[derive(Clone, Debug)]
pub struct Fault {
    operation: Option<Operation>,
    sectors: Range<Sector>,
    when: When,
    error: io::ErrorKind,
}

/// Which of the requests that match a fault fail, counted from 0.
#[derive(Clone, Copy, Debug)]
enum When {
    Always,
    Nth(u64),
    From(u64),
    Random { seed: u64, one_in: u64 },
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            operation: None,
            sectors: Sector::ZERO..Sector(u64::MAX),
            when: When::Always,
            error: io::ErrorKind::Other,
        }
    }
}

impl Fault {
    /// Fails every request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only requests that do `operation`.
    #[must_use]
    pub fn on(self, operation: Operation) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Only requests that touch one of `sectors`. Flushes touch none.
    #[must_use]
    pub fn at(self, sectors: Range<Sector>) -> Self {
        Self { sectors, ..self }
    }

    /// Only the `number`th of the requests that match otherwise, counted from 0.
    #[must_use]
    pub fn nth(self, number: u64) -> Self {
        Self { when: When::Nth(number), ..self }
    }

    /// The `number`th of the requests that match otherwise, counted from 0, and all later ones.
    #[must_use]
    pub fn from_nth(self, number: u64) -> Self {
        Self { when: When::From(number), ..self }
    }

    /// On average one in `one_in` of the requests that match otherwise; which ones is a function
    /// of `seed` and the order of submission. 0 = none.
    #[must_use]
    pub fn random(self, seed: u64, one_in: u64) -> Self {
        Self { when: When::Random { seed, one_in }, ..self }
    }

    /// With this error, for instance [`io::ErrorKind::StorageFull`].
    #[must_use]
    pub fn error(self, error: io::ErrorKind) -> Self {
        Self { error, ..self }
    }

    fn matches(&self, bio: &Bio) -> bool {
        let all = self.sectors == (Sector::ZERO..Sector(u64::MAX));
        self.operation.is_none_or(|operation| operation == bio.operation())
            && (all || bio.end().is_some_and(|end| overlap(&self.sectors, &(bio.sector()..end))))
    }

    /// Whether the `number`th matching request fails.
    fn strikes(&self, number: u64) -> bool {
        match self.when {
            When::Always => true,
            When::Nth(nth) => number == nth,
            When::From(first) => number >= first,
            When::Random { one_in: 0, .. } => false,
            When::Random { seed, one_in } => mix(seed ^ mix(number)).is_multiple_of(one_in),
        }
    }
}

/// Spreads the bits of `value` (the finaliser of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Hands requests to the device below, except those that a [`Fault`] fails: they are answered with
/// its error and have no effect.
pub struct FaultyDevice {
    below: [Arc<dyn BlockDevice>; 1],
    /// With the number of requests that matched so far.
    faults: Vec<(Fault, AtomicU64)>,
    injected: AtomicU64,
}

impl FaultyDevice {
    /// `below` with `faults`; the first that applies to a request decides its error.
    #[must_use]
    pub fn new(below: Arc<dyn BlockDevice>, faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = faults.into_iter().map(|fault| (fault, AtomicU64::new(0))).collect();
        Self { below: [below], faults, injected: AtomicU64::new(0) }
    }

    /// Number of requests failed so far.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    /// The error that `bio` meets, counting it for every fault that it matches.
    fn strike(&self, bio: &Bio) -> Option<io::ErrorKind> {
        let mut error = None;
        for (fault, matched) in self.faults.iter().filter(|(fault, _)| fault.matches(bio)) {
            if fault.strikes(matched.fetch_add(1, Ordering::Relaxed)) {
                error = error.or(Some(fault.error));
            }
        }
        error
    }
}

impl BlockDevice for FaultyDevice {
    fn name(&self) -> &str {
        self.below[0].name()
    }

    fn capacity(&self) -> Sector {
        self.below[0].capacity()
    }

    fn limits(&self) -> Limits {
        self.below[0].limits()
    }

    fn is_read_only(&self) -> bool {
        self.below[0].is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Stacked(self)
    }
}

impl Stacked for FaultyDevice {
    fn map<'d>(&'d self, bio: Bio, below: &mut Below<'d>) {
        match self.strike(&bio) {
            Some(error) => {
                self.injected.fetch_add(1, Ordering::Relaxed);
                bio.fail(self.name(), io::Error::from(error).into());
            }
            None => below.submit(&*self.below[0], bio),
        }
    }

    fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDevice, flush, read_buffer, write_all_at};

    fn faulty(faults: impl IntoIterator<Item = Fault>) -> FaultyDevice {
        FaultyDevice::new(Arc::new(MemoryDevice::new(1 << 20)), faults)
    }

    #[test]
    fn a_bad_range_fails_writes_there_and_nothing_else() {
        let range = Sector(8)..Sector(16);
        let disk =
            faulty([Fault::new().on(Operation::Write).at(range).error(io::ErrorKind::StorageFull)]);
        assert!(write_all_at(&disk, Sector(7), &[1; 512]).is_ok());
        let error = write_all_at(&disk, Sector(7), &[1; 1024]).unwrap_err();
        assert!(error.is_no_space());
        assert!(read_buffer(&disk, Sector(8), 512).unwrap().iter().all(|&byte| byte == 0));
        assert!(flush(&disk).is_ok());
        assert_eq!(disk.injected(), 1);
    }

    #[test]
    fn counted_faults_strike_when_told() {
        let disk = faulty([Fault::new().on(Operation::Flush).nth(1)]);
        assert!(flush(&disk).is_ok());
        assert!(flush(&disk).is_err());
        assert!(flush(&disk).is_ok());
        let disk = faulty([Fault::new().from_nth(2)]);
        let outcomes: Vec<_> = (0..4).map(|_| flush(&disk).is_ok()).collect();
        assert_eq!(outcomes, [true, true, false, false]);
    }

    #[test]
    fn random_faults_repeat_with_their_seed() {
        let outcomes = |seed| -> Vec<bool> {
            let disk = faulty([Fault::new().random(seed, 4)]);
            (0..64).map(|_| flush(&disk).is_ok()).collect()
        };
        assert_eq!(outcomes(1), outcomes(1));
        assert_ne!(outcomes(1), outcomes(2));
        assert!((32..64).contains(&outcomes(1).iter().filter(|&&ok| ok).count()));
    }
}
