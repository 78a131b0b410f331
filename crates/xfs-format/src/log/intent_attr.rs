//! An attribute to change (docs/format/journal/intents.md#attributes).

use super::item::check_length;
use crate::bytes::{le16, le32, le64};
use crate::units::InodeNumber;
use crate::{AttrFlags, FieldDefect, Rule};

/// What happens to an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttrAction {
    /// It gets a value, whether it exists or not.
    Set(NameValue),
    /// It is removed, if it exists.
    Remove(Vec<u8>),
    /// It gets another value.
    Replace(NameValue),
    /// A parent pointer appears.
    SetParent(NameValue),
    /// A parent pointer goes.
    RemoveParent(NameValue),
    /// A parent pointer takes the place of another.
    ReplaceParent {
        /// The one that goes.
        old: NameValue,
        /// The one that comes.
        new: NameValue,
    },
}

/// An attribute's name and value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameValue {
    /// Without the prefix of its namespace.
    pub name: Vec<u8>,
    /// The bytes.
    pub value: Vec<u8>,
}

/// A change of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrChange {
    /// Whose attribute.
    pub inode: InodeNumber,
    /// Generation that the inode must have; 0 but for parent pointers.
    pub generation: u32,
    /// Namespace, and whether the entry is half made.
    pub filter: AttrFlags,
    /// What happens.
    pub action: AttrAction,
}

impl AttrChange {
    const LEN: usize = 40;

    pub(crate) fn decode(regions: &[&[u8]]) -> Result<Self, FieldDefect> {
        let first = regions.first().copied().unwrap_or_default();
        check_length(first, Self::LEN)?;
        let operation = le32(first, 24);
        let (name_len, value_len) = (le32(first, 28), le32(first, 32) as usize);
        let mut rest = regions[1..].iter().copied();
        let mut next = |len: usize| {
            let region = rest.next().unwrap_or_default();
            check_length(region, len.next_multiple_of(4))?;
            Ok::<_, FieldDefect>(region[..len].to_vec())
        };
        let rule = Rule::AtMost(u64::from(u16::MAX) + 1);
        FieldDefect::unless(value_len <= 1 << 16, "value length", value_len as u64, rule)?;
        let mut pair = |name: usize| {
            let name = next(name)?;
            let value = if value_len == 0 { Vec::new() } else { next(value_len)? };
            Ok::<_, FieldDefect>(NameValue { name, value })
        };
        let whole = name_len.min(u32::from(u16::MAX)) as usize;
        let action = match operation {
            1 => AttrAction::Set(pair(whole)?),
            2 => AttrAction::Remove(next(whole)?),
            3 => AttrAction::Replace(pair(whole)?),
            4 => AttrAction::SetParent(pair(whole)?),
            5 => AttrAction::RemoveParent(pair(whole)?),
            6 => {
                let (old, new) = (usize::from(le16(first, 28)), usize::from(le16(first, 30)));
                let names = (next(old)?, next(new)?);
                let values = (next(value_len)?, next(value_len)?);
                AttrAction::ReplaceParent {
                    old: NameValue { name: names.0, value: values.0 },
                    new: NameValue { name: names.1, value: values.1 },
                }
            }
            found => {
                let rule = Rule::Text("an operation that exists (1 to 6)");
                return Err(FieldDefect { field: "alfi_op_flags", found: found.into(), rule });
            }
        };
        let filter = le32(first, 36);
        let flags = u8::try_from(filter).ok().and_then(AttrFlags::from_bits);
        let rule = Rule::Text("flags of attributes");
        let unknown = FieldDefect { field: "alfi_attr_filter", found: filter.into(), rule };
        Ok(Self {
            inode: InodeNumber(le64(first, 16)),
            generation: le32(first, 4),
            filter: flags.ok_or(unknown)?,
            action,
        })
    }

    /// The payload regions, in order.
    fn payload(&self) -> Vec<&[u8]> {
        match &self.action {
            AttrAction::Remove(name) => vec![name],
            AttrAction::Set(pair) | AttrAction::Replace(pair) if pair.value.is_empty() => {
                vec![&pair.name]
            }
            AttrAction::Set(pair)
            | AttrAction::Replace(pair)
            | AttrAction::SetParent(pair)
            | AttrAction::RemoveParent(pair) => vec![&pair.name, &pair.value],
            AttrAction::ReplaceParent { old, new } => {
                vec![&old.name, &new.name, &old.value, &new.value]
            }
        }
    }

    pub(crate) fn regions(&self) -> usize {
        1 + self.payload().len()
    }

    /// The regions; `first` holds the part that all intents have, with a count of 0.
    pub(crate) fn encode(&self, mut first: Vec<u8>) -> Vec<Vec<u8>> {
        let (operation, names, value) = match &self.action {
            AttrAction::Set(pair) => (1_u32, pair.name.len(), pair.value.len()),
            AttrAction::Remove(name) => (2, name.len(), 0),
            AttrAction::Replace(pair) => (3, pair.name.len(), pair.value.len()),
            AttrAction::SetParent(pair) => (4, pair.name.len(), pair.value.len()),
            AttrAction::RemoveParent(pair) => (5, pair.name.len(), pair.value.len()),
            AttrAction::ReplaceParent { old, new } => {
                (6, old.name.len() | new.name.len() << 16, new.value.len())
            }
        };
        first[4..8].copy_from_slice(&self.generation.to_le_bytes());
        first.extend(self.inode.0.to_le_bytes());
        let filter = u32::from(self.filter.bits());
        for word in [operation, names as u32, value as u32, filter] {
            first.extend(word.to_le_bytes());
        }
        let mut regions = vec![first];
        for bytes in self.payload() {
            let mut region = bytes.to_vec();
            region.resize(bytes.len().next_multiple_of(4), 0);
            regions.push(region);
        }
        regions
    }
}
