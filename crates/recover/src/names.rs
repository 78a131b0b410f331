//! Names of files: by the attributes in their inodes, which say the parent, and by entries of
//! directories, also those that were removed.

use undercroft_xfs_format::bytes::{be32, be64};
use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{
    AttrLeafLayout, AttrShortform, AttrValue, Geometry, Namespace, PARENT_VALUE_SIZE, name_defect,
};

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The directory.
    pub parent: InodeNumber,
    /// Its generation, where the name says it.
    pub generation: Option<u32>,
    /// The name there.
    pub name: Vec<u8>,
}

/// The name that an attribute says.
fn of_attribute(geometry: &Geometry, name: &[u8], value: &[u8]) -> Option<Name> {
    if value.len() != PARENT_VALUE_SIZE || name_defect(name).is_some() {
        return None;
    }
    let parent = InodeNumber(be64(value, 0));
    let name = Name { parent, generation: Some(be32(value, 8)), name: name.to_vec() };
    geometry.valid_inode(parent).then_some(name)
}

/// The names in attributes inside an inode.
pub(crate) fn of_shortform(geometry: &Geometry, fork: &[u8]) -> Vec<Name> {
    let Ok(list) = AttrShortform::parse(fork) else { return Vec::new() };
    let parents = list.entries().filter(|entry| entry.namespace == Namespace::Parent);
    parents.filter_map(|entry| of_attribute(geometry, entry.name, entry.value)).collect()
}

/// The names in a leaf of attributes.
pub(crate) fn of_leaf(geometry: &Geometry, block: &[u8]) -> Vec<Name> {
    let layout = AttrLeafLayout::new(geometry);
    let entries = layout.entries(block).filter_map(|entry| match entry.value {
        AttrValue::Local(value) if entry.namespace() == Namespace::Parent => {
            of_attribute(geometry, entry.name, value)
        }
        _ => None,
    });
    entries.collect()
}

/// The attributes inside a free inode, whose core does not say any more where they begin: at `hint`,
/// where inodes have them at first, or at the only other place. Returns the place, too.
pub(crate) fn find_shortform<'l>(
    geometry: &Geometry,
    literal: &'l [u8],
    hint: Option<usize>,
) -> Option<(usize, &'l [u8])> {
    // Where the attributes of a new inode begin.
    const USUAL: usize = 24 * 8;
    let places = hint.into_iter().chain([USUAL]).chain((8..literal.len()).step_by(8));
    for place in places {
        if let Some(fork) = literal.get(place..)
            && !of_shortform(geometry, fork).is_empty()
        {
            return Some((place, fork));
        }
    }
    None
}
