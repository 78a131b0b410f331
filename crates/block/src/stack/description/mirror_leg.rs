//! A leg of a mirror somewhere in a device, to be filled with the data of the other legs.

use super::build::{StackObserver, check_distinct, open_leaf};
use super::leaf_options::LeafOptions;
use super::tree::{Description, LeafDescription};
use crate::stack::{Mirror, StackError};

/// A leg of a mirror, by its place in a [`Description`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorLeg<'d> {
    legs: &'d [Description],
    number: usize,
}

impl Description {
    /// Every leg of every mirror in the device, those of outer mirrors first.
    #[must_use]
    pub fn mirror_legs(&self) -> Vec<MirrorLeg<'_>> {
        let mut found = Vec::new();
        if let Self::Mirror(legs) = self {
            found.extend((0..legs.len()).map(|number| MirrorLeg { legs, number }));
        }
        found.extend(self.legs().iter().flat_map(Self::mirror_legs));
        found
    }
}

impl<'d> MirrorLeg<'d> {
    /// The leg.
    #[must_use]
    pub fn description(&self) -> &'d Description {
        &self.legs[self.number]
    }

    /// Its number in its mirror, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Whether `name` means this leg: it describes the same, or the same file with other options.
    #[must_use]
    pub fn is_called(&self, name: &Description) -> bool {
        match (self.description(), name) {
            (Description::File(leg), Description::File(named)) => leg.path == named.path,
            (leg, name) => leg == name,
        }
    }

    /// Opens the mirror, without the rest of the device, for change. This leg is not used before it
    /// is [resynchronised](Mirror::resynchronise).
    ///
    /// # Errors
    /// As [`Description::open`]; and when this leg is the only one, or shorter than the others.
    pub fn open_stale(&self, observer: Option<StackObserver>) -> Result<Mirror, StackError> {
        let leaves: Vec<_> = self.legs.iter().flat_map(Description::leaves).collect();
        check_distinct(&leaves)?;
        let mut open = |leaf: LeafDescription<'_>| open_leaf(leaf, LeafOptions::default());
        let legs = self.legs.iter().map(|leg| leg.assemble(observer.clone(), &mut open));
        let legs = legs.collect::<Result<Vec<_>, StackError>>()?;
        let mirror = Mirror::with_stale(legs, &[self.number])?;
        if let Some(observer) = observer {
            mirror.observe(move |event| observer(event));
        }
        Ok(mirror)
    }
}
