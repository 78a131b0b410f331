//! One attribute as callers name it, and the comparison of two.

use crate::error::Error;
use crate::format::{
    ATTR_NAME_MAX, ATTR_VALUE_MAX, AttrItem, AttrLeafEntry, AttrLeafLayout, AttrValue, Namespace,
    PARENT_VALUE_SIZE, verify_attr_name,
};
use crate::geometry::Geometry;

/// An attribute with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    /// Namespace.
    pub namespace: Namespace,
    /// Name without prefix, 1 to 255 bytes.
    pub name: &'a [u8],
    /// Value, at most 65,536 bytes.
    pub value: &'a [u8],
}

/// Whether readers see an entry of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    Complete,
    /// It is not all there yet, or it is being removed.
    Incomplete,
}

impl Attribute<'_> {
    /// Checks the lengths.
    pub(crate) fn verify(&self) -> Result<(), Error> {
        let named = |what| format!("attribute {}: {what}", self.display_name());
        verify_attr_name(self.name).map_err(|what| match self.name.len() > ATTR_NAME_MAX {
            true => Error::AttributeNameTooLong(named(what)),
            false => Error::Invalid(named(what)),
        })?;
        if self.value.len() > ATTR_VALUE_MAX {
            return Err(Error::AttributeTooLarge(named(format!(
                "value of {} bytes, at most {ATTR_VALUE_MAX} can be stored",
                self.value.len()
            ))));
        }
        if self.namespace == Namespace::Parent && self.value.len() != PARENT_VALUE_SIZE {
            let what = format!("value of {} bytes in a parent pointer", self.value.len());
            return Err(Error::Invalid(named(what)));
        }
        Ok(())
    }

    /// Name with prefix, for messages.
    pub(super) fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.namespace.full_name(self.name)).into_owned()
    }

    pub(super) fn hash(&self, geometry: &Geometry) -> u32 {
        self.namespace.hash(self.name, self.value, geometry.features.ascii_ci())
    }

    /// Whether an entry is this attribute. Parent pointers are told apart by their values too.
    pub(super) fn is(&self, namespace: Namespace, name: &[u8], value: &[u8]) -> bool {
        namespace == self.namespace
            && name == self.name
            && (namespace != Namespace::Parent || value == self.value)
    }

    /// Whether the other is this attribute, with any value.
    pub(super) fn is_same(&self, other: &Attribute<'_>) -> bool {
        self.is(other.namespace, other.name, other.value)
    }

    /// Whether an entry of a leaf, of this state, is this attribute.
    pub(super) fn is_entry(&self, entry: &AttrLeafEntry<'_>, state: EntryState) -> bool {
        let value = match entry.value {
            AttrValue::Local(value) => value,
            AttrValue::Remote { .. } => &[],
        };
        entry.incomplete() == (state == EntryState::Incomplete)
            && self.is(entry.namespace(), entry.name, value)
    }

    /// Whether its value lies beside its name in a leaf.
    pub(super) fn is_local(&self, layout: AttrLeafLayout) -> bool {
        self.namespace == Namespace::Parent || layout.is_local(self.name.len(), self.value.len())
    }

    /// What a leaf stores of it, the value being at `value`.
    pub(super) fn item(&self, geometry: &Geometry, value: AttrValue<'_>) -> AttrItem {
        AttrItem::new(&AttrLeafEntry {
            hash: self.hash(geometry),
            flags: self.namespace.flags(),
            name: self.name,
            value,
        })
    }
}
