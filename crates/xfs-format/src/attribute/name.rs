//! Names of extended attributes: namespaces, flag bits, hash
//! (docs/format/attributes.md#namespaces).

use crate::hash_tree::name_hash::{entry_hash, name_hash};
use bitflags::bitflags;

/// Longest name in bytes, without the prefix of its namespace.
pub const ATTR_NAME_MAX: usize = 255;

/// Longest value in bytes.
pub const ATTR_VALUE_MAX: usize = 65536;

/// Bytes of the value of a parent pointer.
pub const PARENT_VALUE_SIZE: usize = 12;

bitflags! {
    /// Flags of an entry, in all forms. Bits without a name are refused by the verifiers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AttrFlags: u8 {
        /// In leaves: the value lies beside the name.
        const LOCAL = 0x01;
        /// Namespace "trusted.".
        const ROOT = 0x02;
        /// Namespace "security.".
        const SECURE = 0x04;
        /// A parent pointer.
        const PARENT = 0x08;
        /// Being made or replaced in several transactions: readers skip it.
        const INCOMPLETE = 0x80;
    }
}

/// Whose names an attribute lives among. The prefix is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespace {
    /// "user."
    User,
    /// "trusted."
    Trusted,
    /// "security."
    Security,
    /// Parent pointers, not visible as attributes.
    Parent,
}

impl Namespace {
    /// Its bit in the flags of an entry.
    #[must_use]
    pub const fn flags(self) -> AttrFlags {
        match self {
            Self::User => AttrFlags::empty(),
            Self::Trusted => AttrFlags::ROOT,
            Self::Security => AttrFlags::SECURE,
            Self::Parent => AttrFlags::PARENT,
        }
    }

    /// The namespace that flags name; `None` if they name two or hold unknown bits.
    #[must_use]
    pub fn from_flags(flags: AttrFlags) -> Option<Self> {
        let bits = flags - AttrFlags::LOCAL - AttrFlags::INCOMPLETE;
        [Self::User, Self::Trusted, Self::Security, Self::Parent]
            .into_iter()
            .find(|namespace| namespace.flags().bits() == bits.bits())
    }

    /// Splits "user.name" into namespace and name. `None` for prefixes that XFS does not store as
    /// they are ("system." among them).
    #[must_use]
    pub fn split(full: &[u8]) -> Option<(Self, &[u8])> {
        [Self::User, Self::Trusted, Self::Security].into_iter().find_map(|namespace| {
            let name = full.strip_prefix(namespace.prefix().as_bytes())?;
            Some((namespace, name))
        })
    }

    /// The prefix with its dot; parent pointers have one for messages only.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::User => "user.",
            Self::Trusted => "trusted.",
            Self::Security => "security.",
            Self::Parent => "parent.",
        }
    }

    /// The name with its prefix.
    #[must_use]
    pub fn full_name(self, name: &[u8]) -> Vec<u8> {
        [self.prefix().as_bytes(), name].concat()
    }

    /// Hash by which leaves are ordered. `value` counts for parent pointers, whose names (of
    /// directory entries) fold case where the volume does.
    #[must_use]
    pub fn hash(self, name: &[u8], value: &[u8], fold_case: bool) -> u32 {
        match (self, value.first_chunk::<8>()) {
            (Self::Parent, Some(parent)) => {
                let parent = u64::from_be_bytes(*parent);
                entry_hash(name, fold_case) ^ (parent >> 32) as u32 ^ parent as u32
            }
            _ => name_hash(name),
        }
    }
}

/// Checks what the format demands of a name.
///
/// # Errors
///
/// The rule that the name breaks.
pub fn verify_attr_name(name: &[u8]) -> Result<(), String> {
    if name.is_empty() || name.len() > ATTR_NAME_MAX {
        return Err(format!("name of {} bytes, must be 1 to {ATTR_NAME_MAX}", name.len()));
    }
    if name.contains(&0) {
        return Err(format!("name {:?} contains a zero byte", String::from_utf8_lossy(name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_split_and_join() {
        for (full, namespace, name) in [
            (&b"user.foo"[..], Namespace::User, &b"foo"[..]),
            (b"trusted.SGI_ACL_FILE", Namespace::Trusted, b"SGI_ACL_FILE"),
            (b"security.selinux", Namespace::Security, b"selinux"),
            (b"user.", Namespace::User, b""),
        ] {
            assert_eq!(Namespace::split(full), Some((namespace, name)));
            assert_eq!(namespace.full_name(name), full);
        }
        assert_eq!(Namespace::split(b"system.posix_acl_access"), None);
        assert_eq!(Namespace::split(b"parent.x"), None);
    }

    #[test]
    fn parent_hash_of_the_reference() {
        let value = [0, 0, 0, 0, 0, 0, 0, 128, 1, 2, 3, 4];
        assert_eq!(Namespace::Parent.hash(b"hello", &value, false), 0x8cbb_36e9);
        assert_eq!(Namespace::Parent.hash(b"HELLO", &value, true), 0x8cbb_36e9);
        assert_eq!(Namespace::User.hash(b"hello", &value, true), 0x8cbb_3669);
    }

    #[test]
    fn flags_name_one_namespace() {
        assert_eq!(Namespace::from_flags(AttrFlags::LOCAL), Some(Namespace::User));
        assert_eq!(
            Namespace::from_flags(AttrFlags::LOCAL | AttrFlags::PARENT),
            Some(Namespace::Parent)
        );
        assert_eq!(Namespace::from_flags(AttrFlags::ROOT | AttrFlags::SECURE), None);
        assert_eq!(Namespace::from_flags(AttrFlags::from_bits_retain(0x10)), None);
    }
}
