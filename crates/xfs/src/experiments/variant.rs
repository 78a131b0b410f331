//! The algorithms that are compared: near mode as the library has it, and searches in its place.

use super::indexed::Indexed;
use super::{NearSearch, NearSteps};
use crate::error::Error;
use std::fmt;

/// An algorithm for near requests. All of them keep the same trees on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// That of Linux 5.5 and later, which is the library's: a scan of the longest extents, then a
    /// search by size and by place at once.
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

    /// The variant of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// Its search, none for near mode itself: for
    /// [`set_near_search`](crate::Volume::set_near_search).
    #[must_use]
    pub fn search(self) -> Option<Box<dyn NearSearch>> {
        match self {
            Self::Near => None,
            Self::Near2018 => Some(Box::new(Crawl)),
            Self::BySize => Some(Box::new(BySize)),
            Self::Indexed => Some(Box::<Indexed>::default()),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Near mode before Linux 5.5: without the probes by size, walks visit every extent up to the first
/// that will do.
#[derive(Debug)]
struct Crawl;

impl NearSearch for Crawl {
    fn find(&self, steps: &mut dyn NearSteps) -> Result<(), Error> {
        if steps.longest_first(true)? {
            return Ok(());
        }
        steps.start_walks()?;
        while steps.walk()? {}
        steps.finish_walks()
    }
}

/// By size alone.
#[derive(Debug)]
struct BySize;

impl NearSearch for BySize {
    fn find(&self, steps: &mut dyn NearSteps) -> Result<(), Error> {
        // The by-size search knows no limits of place.
        if steps.request().range.is_none() {
            return steps.by_size();
        }
        if steps.longest_first(true)? { Ok(()) } else { steps.combined() }
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
}
