//! Parent pointers: one attribute for every directory entry that leads to the inode
//! (docs/format/parent-pointers.md).
//!
//! The name is the entry's, the value names the directory; both together are the identity, so two
//! links of one name in two directories are two attributes. Values are never remote, and an inode
//! keeps its attribute fork while the volume has the feature.

use super::change::{SetMode, remove as remove_attribute, set};
use super::entry::Attribute;
use super::read::for_each;
use crate::da::{DaFork, DaForkMut};
use crate::error::Error;
use crate::format::{Namespace, PARENT_VALUE_SIZE};
use crate::units::{FileBlock, InodeNumber};

/// One directory entry as its target knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentPointer<'a> {
    /// Name of the entry.
    pub name: &'a [u8],
    /// The directory.
    pub parent: InodeNumber,
    /// Generation of the directory's inode.
    pub generation: u32,
}

impl<'a> ParentPointer<'a> {
    /// The value to store in [`attribute`](Self::attribute).
    #[must_use]
    pub(crate) fn value(&self) -> [u8; PARENT_VALUE_SIZE] {
        let mut value = [0; PARENT_VALUE_SIZE];
        value[..8].copy_from_slice(&self.parent.0.to_be_bytes());
        value[8..].copy_from_slice(&self.generation.to_be_bytes());
        value
    }

    /// The pointer as an attribute, to be stored among others by [`set_all`](super::set_all).
    #[must_use]
    pub(crate) const fn attribute(&self, value: &'a [u8; PARENT_VALUE_SIZE]) -> Attribute<'a> {
        Attribute { namespace: Namespace::Parent, name: self.name, value }
    }

    fn decode(attribute: &Attribute<'a>) -> Option<Self> {
        let value = <[u8; PARENT_VALUE_SIZE]>::try_from(attribute.value).ok()?;
        let [a, b, c, d, e, f, g, h, generation @ ..] = value;
        Some(Self {
            name: attribute.name,
            parent: InodeNumber(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
            generation: u32::from_be_bytes(generation),
        })
    }
}

/// Adds the pointer of a new entry.
///
/// # Errors
///
/// [`Error::Exists`] if it is there; as [`set`].
pub(crate) fn add<F: DaForkMut + ?Sized>(
    fork: &mut F,
    pointer: &ParentPointer<'_>,
) -> Result<(), Error> {
    set(fork, &pointer.attribute(&pointer.value()), SetMode::Create)
}

/// Removes the pointer of an entry that goes away.
///
/// # Errors
///
/// Damage: a pointer that is missing is damage too.
pub(crate) fn remove<F: DaForkMut + ?Sized>(
    fork: &mut F,
    pointer: &ParentPointer<'_>,
) -> Result<(), Error> {
    if remove_attribute(fork, &pointer.attribute(&pointer.value()))? {
        return Ok(());
    }
    let what = format!(
        "no parent pointer for {:?} in directory {}",
        String::from_utf8_lossy(pointer.name),
        pointer.parent
    );
    Err(fork.corrupt(FileBlock(0), what))
}

/// Replaces the pointer of an entry that moved.
///
/// # Errors
///
/// As [`remove`] and [`add`].
pub(crate) fn replace<F: DaForkMut + ?Sized>(
    fork: &mut F,
    old: &ParentPointer<'_>,
    new: &ParentPointer<'_>,
) -> Result<(), Error> {
    remove(fork, old)?;
    add(fork, new)
}

/// Calls `visit` with every parent pointer.
///
/// # Errors
///
/// Damage, a device error, or the first error of `visit`.
pub(crate) fn for_each_parent<F: DaFork + ?Sized>(
    fork: &mut F,
    visit: &mut dyn FnMut(&ParentPointer<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let inode = fork.inode();
    for_each(fork, &mut |attribute| {
        if attribute.namespace != Namespace::Parent {
            return Ok(());
        }
        match ParentPointer::decode(attribute) {
            Some(pointer) => visit(&pointer),
            None => {
                let (structure, block) = ("attributes", FileBlock(0));
                let what = format!(
                    "parent pointer {:?} has a value of {} bytes",
                    String::from_utf8_lossy(attribute.name),
                    attribute.value.len()
                );
                Err(Error::Fork { structure, inode, block, what })
            }
        }
    })
}
