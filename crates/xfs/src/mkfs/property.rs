//! The property that `mkfs.xfs` gives new volumes: what background checks of a live one may do.
//!
//! It is an attribute of the root directory, in the namespace `trusted.`, but it says something of
//! the volume and nothing of the tree in it. `mkfs.xfs` 7.2 sets it, unless told otherwise, exactly
//! when a kernel can rebuild everything from redundant records: with reverse mappings and parent
//! pointers.

use crate::format::Features;

/// Full names of attributes of the root directory that are properties of a volume start like this.
const PREFIX: &[u8] = b"trusted.xfs:";

/// Name, without `trusted.`, and value.
const AUTOFSCK: (&[u8], &[u8]) = (b"xfs:autofsck", b"repair");

/// The property of a new volume with these features, as name without `trusted.` and value.
#[must_use]
pub fn default_property(features: &Features) -> Option<(&'static [u8], &'static [u8])> {
    (features.rmapbt() && features.parent_pointers()).then_some(AUTOFSCK)
}

/// Whether an attribute of a root directory, by its full name, is a property of the volume.
#[must_use]
pub fn is_property(name: &[u8]) -> bool {
    name.starts_with(PREFIX)
}
