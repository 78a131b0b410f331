//! Attributes inside the inode (docs/format/attributes.md#short-form).
//!
//! A list of unsorted entries behind a header of four bytes: total size be16, count, zero. An
//! entry is name length, value length, flags, name, value.

use crate::bytes::{be16, put_be16};
use crate::{AttrFlags, Namespace, verify_attr_name};

/// Bytes before the first entry.
pub const SHORTFORM_HEADER: usize = 4;

/// Bytes of an entry before its name.
const ENTRY_HEADER: usize = 3;

/// Longest name and longest value of an entry.
pub const SHORTFORM_PART_MAX: usize = 254;

/// A verified list of entries.
#[derive(Clone, Copy, Debug)]
pub struct AttrShortform<'a> {
    bytes: &'a [u8],
}

/// One attribute of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortformEntry<'a> {
    /// Namespace.
    pub namespace: Namespace,
    /// Name without prefix.
    pub name: &'a [u8],
    /// Value.
    pub value: &'a [u8],
}

impl<'a> AttrShortform<'a> {
    /// A list of no entries.
    pub const EMPTY: AttrShortform<'static> = AttrShortform { bytes: &[0, 4, 0, 0] };

    /// Verifies the list at the start of `fork`, which may be longer.
    ///
    /// # Errors
    ///
    /// Which field is wrong, and how.
    pub fn parse(fork: &'a [u8]) -> Result<Self, String> {
        if fork.len() < SHORTFORM_HEADER {
            return Err(format!("{} bytes are too few for attributes", fork.len()));
        }
        let (total, count) = (usize::from(be16(fork, 0)), fork[2]);
        if total < SHORTFORM_HEADER || total > fork.len() {
            return Err(format!("attribute size {total} in a fork of {} bytes", fork.len()));
        }
        let bytes = &fork[..total];
        let mut at = SHORTFORM_HEADER;
        for index in 0..count {
            at = verify_entry(bytes, at).map_err(|what| format!("attribute {index}: {what}"))?;
        }
        if at != total {
            return Err(format!("{count} attributes end at byte {at}, not at {total}"));
        }
        Ok(Self { bytes })
    }

    /// The entries in the order they are stored.
    pub fn entries(self) -> impl Iterator<Item = ShortformEntry<'a>> {
        let mut at = SHORTFORM_HEADER;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..)?;
            let [name, value, flags, ..] = *rest else { return None };
            let (name, value) = (usize::from(name), usize::from(value));
            at += ENTRY_HEADER + name + value;
            let (name, value) = rest[ENTRY_HEADER..ENTRY_HEADER + name + value].split_at(name);
            let namespace = Namespace::from_flags(AttrFlags::from_bits_retain(flags))?;
            Some(ShortformEntry { namespace, name, value })
        })
    }

    /// Bytes of the list.
    #[must_use]
    pub const fn size(self) -> usize {
        self.bytes.len()
    }

    /// Entries of the list.
    #[must_use]
    pub const fn count(self) -> usize {
        self.bytes[2] as usize
    }
}

/// Verifies the entry at `at` and returns where it ends.
fn verify_entry(bytes: &[u8], at: usize) -> Result<usize, String> {
    let Some(&[name, value, flags]) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
        return Err("starts behind the end of the list".into());
    };
    if flags & (AttrFlags::LOCAL | AttrFlags::INCOMPLETE).bits() != 0
        || Namespace::from_flags(AttrFlags::from_bits_retain(flags)).is_none()
    {
        return Err(format!("flags {flags:#04x}"));
    }
    let name_end = at + ENTRY_HEADER + usize::from(name);
    let end = name_end + usize::from(value);
    if end > bytes.len() {
        return Err(format!("ends at byte {end} of {}", bytes.len()));
    }
    verify_attr_name(&bytes[at + ENTRY_HEADER..name_end])?;
    Ok(end)
}

/// Entries of a list at most: an inode of 2 KiB has room for more.
pub const SHORTFORM_COUNT_MAX: usize = 255;

/// Bytes of an entry in the list; `None` if its name or value is too long for this form.
#[must_use]
pub const fn shortform_entry_size(name: usize, value: usize) -> Option<usize> {
    if name > SHORTFORM_PART_MAX || value > SHORTFORM_PART_MAX {
        return None;
    }
    Some(ENTRY_HEADER + name + value)
}

/// Bytes of an attribute list under construction.
#[derive(Clone, Debug)]
pub struct ShortformBuilder {
    bytes: Vec<u8>,
}

impl ShortformBuilder {
    /// An empty list with room for `size` bytes.
    #[must_use]
    pub fn with_capacity(size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size.max(SHORTFORM_HEADER));
        bytes.extend([0; SHORTFORM_HEADER]);
        Self { bytes }
    }

    /// Adds an entry at the end; [`shortform_entry_size`] accepted it, and it is one of at most
    /// [`SHORTFORM_COUNT_MAX`].
    pub fn push(&mut self, entry: &ShortformEntry<'_>) {
        debug_assert!(shortform_entry_size(entry.name.len(), entry.value.len()).is_some());
        self.bytes.extend([
            entry.name.len() as u8,
            entry.value.len() as u8,
            entry.namespace.flags().bits(),
        ]);
        self.bytes.extend(entry.name);
        self.bytes.extend(entry.value);
        self.bytes[2] += 1;
    }

    /// The finished list.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let total = self.bytes.len();
        put_be16(&mut self.bytes, 0, total as u16);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inode::samples::{from_hex, root_inode};
    use proptest::prelude::*;

    #[test]
    fn the_worked_examples_of_the_reference() {
        let inode = root_inode();
        let list = AttrShortform::parse(&inode[472..]).unwrap();
        let entries: Vec<_> = list.entries().collect();
        assert_eq!(
            entries,
            [ShortformEntry {
                namespace: Namespace::Trusted,
                name: b"xfs:autofsck",
                value: b"repair"
            }]
        );
        let mut bytes = vec![0, 27, 1, 0, 8, 12, 8];
        bytes.extend(b"0.bitmap");
        bytes.extend(from_hex("00000000000a008069919f24"));
        let list = AttrShortform::parse(&bytes).unwrap();
        let entry = list.entries().next().unwrap();
        assert_eq!((entry.namespace, entry.name), (Namespace::Parent, &b"0.bitmap"[..]));
        let mut builder = ShortformBuilder::with_capacity(27);
        builder.push(&entry);
        assert_eq!(builder.finish(), bytes);
        assert_eq!(AttrShortform::EMPTY.entries().count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(
            mut bytes in proptest::collection::vec(0_u8..12, 0..64),
            exact: bool,
        ) {
            if exact && bytes.len() >= 4 {
                let total = bytes.len() as u16;
                put_be16(&mut bytes, 0, total);
            }
            if let Ok(list) = AttrShortform::parse(&bytes) {
                prop_assert_eq!(list.entries().count(), list.count());
                let mut builder = ShortformBuilder::with_capacity(0);
                list.entries().for_each(|entry| builder.push(&entry));
                let mut again = builder.finish();
                again[3] = bytes[3];
                prop_assert_eq!(&again[..], &bytes[..list.size()]);
            }
        }
    }
}
