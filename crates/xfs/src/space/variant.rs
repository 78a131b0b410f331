//! Which algorithm serves near requests: a property of the open volume, never of the disk.

use super::AllocationTrace;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An algorithm for near requests. All of them keep the same trees on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// That of Linux 5.5 and later: a scan of the longest extents, then a search by size and by
    /// place at once.
    #[default]
    Near,
    /// That before Linux 5.5: a walk through the by-block tree on both sides of the target.
    Near2018,
    /// The smallest extent that is long enough, wherever it is.
    BySize,
    /// An extent that is long enough and close, found with an index in memory: inodes are put where
    /// there is room for their files, and long extents leave the closest space to short ones.
    Indexed,
}

impl Variant {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Near, Self::Near2018, Self::BySize, Self::Indexed];

    /// Name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Near2018 => "near-2018",
            Self::BySize => "by-size",
            Self::Indexed => "indexed",
        }
    }

    /// Whether a file stays in its group: where no extent is long enough, if it needs no more of
    /// them there; where another thread has the lock, by waiting for it. The others go to the
    /// longest extent of all, wherever it is, and try other groups first.
    pub(crate) const fn stays(self) -> bool {
        matches!(self, Self::Indexed)
    }

    /// The variant of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the allocator of an open volume behaves.
#[derive(Clone, Default)]
pub struct AllocatorOptions {
    /// Algorithm for near requests.
    pub variant: Variant,
    /// For tests: [`Variant::Near`] leaves out the scan of the longest extents for a random half
    /// of the requests, so that both of its parts get work on a young volume. Reproducible by the
    /// seed.
    pub random_near: Option<u64>,
    /// Receives the steps of every allocation.
    pub trace: Option<Arc<dyn AllocationTrace>>,
}

impl fmt::Debug for AllocatorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatorOptions")
            .field("variant", &self.variant)
            .field("random_near", &self.random_near)
            .field("traced", &self.trace.is_some())
            .finish()
    }
}

/// The allocator's state that belongs to no group.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    options: AllocatorOptions,
    /// Draws made for `random_near`.
    draws: AtomicU64,
}

impl Allocator {
    pub(crate) fn new(options: AllocatorOptions) -> Self {
        Self { options, draws: AtomicU64::new(0) }
    }

    pub(crate) fn variant(&self) -> Variant {
        self.options.variant
    }

    #[inline]
    pub(crate) fn trace(&self) -> Option<&dyn AllocationTrace> {
        self.options.trace.as_deref()
    }

    /// Whether this request leaves out the scan of the longest extents.
    pub(crate) fn skips_last_leaf(&self) -> bool {
        let Some(seed) = self.options.random_near else { return false };
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        crate::bytes::mix64(seed.wrapping_add(draw.wrapping_mul(0x9e37_79b9_7f4a_7c15))) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for variant in Variant::ALL {
            assert_eq!(Variant::from_name(variant.name()), Some(variant));
        }
        assert_eq!(Variant::from_name("nearest"), None);
        assert_eq!(Variant::default().to_string(), "near");
    }

    #[test]
    fn about_half_of_the_requests_skip_and_the_seed_decides_which() {
        let draws = |seed| {
            let options = AllocatorOptions { random_near: seed, ..AllocatorOptions::default() };
            let allocator = Allocator::new(options);
            (0..1000).map(|_| allocator.skips_last_leaf()).collect::<Vec<_>>()
        };
        assert!(draws(None).iter().all(|skips| !skips));
        assert_eq!(draws(Some(1)), draws(Some(1)));
        assert_ne!(draws(Some(1)), draws(Some(2)));
        let skipped = draws(Some(1)).iter().filter(|skips| **skips).count();
        assert!((400..600).contains(&skipped));
    }
}
