//! POSIX access control lists: the form Linux passes around, and the form on disk.
//!
//! Linux carries a list in the extended attribute `system.posix_acl_access` or `..._default`, in
//! little-endian words behind a version. XFS stores it as the trusted attribute `SGI_ACL_FILE` or
//! `SGI_ACL_DEFAULT`, in big-endian words behind a count
//! (docs/format/access-control-lists.md#value). An access list that says no more than the mode is
//! not stored at all, and the group bits of the mode are the mask of the list: a caller that stores
//! an access list also stores [`Acl::mode`].

use crate::bytes::{be16, be32};
use thiserror::Error;

/// Version word of the Linux form.
const XATTR_VERSION: u32 = 2;

/// Bytes before the entries, in both forms.
const HEADER: usize = 4;

const XATTR_ENTRY: usize = 8;
const DISK_ENTRY: usize = 12;

/// Id of entries that have none.
const NO_ID: u32 = u32::MAX;

/// Entries that fit the longest attribute value on disk.
const ENTRIES_MAX: usize = (super::ATTR_VALUE_MAX - HEADER) / DISK_ENTRY;

/// Which of the two lists of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclKind {
    /// The access to the file itself.
    Access,
    /// The list that new files in the directory get.
    Default,
}

impl AclKind {
    /// Name of the attribute in Linux, with prefix.
    #[must_use]
    pub const fn xattr_name(self) -> &'static str {
        match self {
            Self::Access => "system.posix_acl_access",
            Self::Default => "system.posix_acl_default",
        }
    }

    /// Name on disk, in the namespace "trusted.".
    #[must_use]
    pub const fn disk_name(self) -> &'static str {
        match self {
            Self::Access => "SGI_ACL_FILE",
            Self::Default => "SGI_ACL_DEFAULT",
        }
    }

    /// The list of this name in Linux.
    #[must_use]
    pub fn from_xattr_name(full: &[u8]) -> Option<Self> {
        [Self::Access, Self::Default].into_iter().find(|kind| kind.xattr_name().as_bytes() == full)
    }

    /// The list of this name in the namespace "trusted." on disk.
    #[must_use]
    pub fn from_disk_name(name: &[u8]) -> Option<Self> {
        [Self::Access, Self::Default].into_iter().find(|kind| kind.disk_name().as_bytes() == name)
    }
}

/// The user, group or class that an entry is about. The order is that of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclTag {
    /// The owner.
    UserObj,
    /// A user.
    User(u32),
    /// The group of the file.
    GroupObj,
    /// A group.
    Group(u32),
    /// Upper bound of what all but owner and others may do.
    Mask,
    /// All others.
    Other,
}

impl AclTag {
    fn from_words(tag: u32, id: u32) -> Option<Self> {
        let plain = match tag {
            0x02 => return (id != NO_ID).then_some(Self::User(id)),
            0x08 => return (id != NO_ID).then_some(Self::Group(id)),
            0x01 => Self::UserObj,
            0x04 => Self::GroupObj,
            0x10 => Self::Mask,
            0x20 => Self::Other,
            _ => return None,
        };
        Some(plain)
    }

    const fn words(self) -> (u16, u32) {
        match self {
            Self::UserObj => (0x01, NO_ID),
            Self::User(id) => (0x02, id),
            Self::GroupObj => (0x04, NO_ID),
            Self::Group(id) => (0x08, id),
            Self::Mask => (0x10, NO_ID),
            Self::Other => (0x20, NO_ID),
        }
    }
}

/// One entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// Its user, group or class.
    pub tag: AclTag,
    /// Their permissions: read 4, write 2, execute 1.
    pub permissions: u8,
}

/// Sorts entries as both forms have them.
pub(super) fn sort_by_tag(entries: &mut [AclEntry]) {
    entries.sort_by_key(|entry| entry.tag);
}

/// Why bytes are not an access control list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not an access control list: {0}")]
pub struct AclError(String);

impl AclError {
    pub(crate) const fn new(what: String) -> Self {
        Self(what)
    }
}

/// A valid list: owner, users by id, group, groups by id, mask, others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

impl Acl {
    /// A list of these entries in any order.
    ///
    /// # Errors
    ///
    /// Entries for owner, group and others are not there exactly once each; users or groups are
    /// named but there is no mask; more entries than the format holds.
    pub fn new(mut entries: Vec<AclEntry>) -> Result<Self, AclError> {
        if entries.len() > ENTRIES_MAX {
            return Err(AclError(format!(
                "{} entries, at most {ENTRIES_MAX} can be stored",
                entries.len()
            )));
        }
        sort_by_tag(&mut entries);
        let count = |tag| entries.iter().filter(|entry| entry.tag == tag).count();
        for tag in [AclTag::UserObj, AclTag::GroupObj, AclTag::Other] {
            if count(tag) != 1 {
                return Err(AclError(format!("{} entries for {tag:?}, must be one", count(tag))));
            }
        }
        let masks = count(AclTag::Mask);
        let named = entries.len() - 3 - masks;
        if masks > 1 || (named > 0 && masks == 0) {
            return Err(AclError(format!("{masks} masks with {named} named users and groups")));
        }
        Ok(Self { entries })
    }

    /// Decodes the Linux form; `None` for a list without entries, which stands for removal.
    ///
    /// # Errors
    ///
    /// Which part is wrong.
    pub fn from_xattr(value: &[u8]) -> Result<Option<Self>, AclError> {
        let word = |at: usize| {
            value
                .get(at..)
                .and_then(|rest| rest.first_chunk())
                .map(|word| u32::from_le_bytes(*word))
        };
        if word(0) != Some(XATTR_VERSION) || !(value.len() - HEADER).is_multiple_of(XATTR_ENTRY) {
            return Err(AclError(format!(
                "{} bytes of version {:?}, expected version {XATTR_VERSION} and whole entries",
                value.len(),
                word(0)
            )));
        }
        let entries: Vec<_> = value[HEADER..]
            .chunks_exact(XATTR_ENTRY)
            .enumerate()
            .map(|(index, raw)| {
                let tag = u16::from_le_bytes([raw[0], raw[1]]);
                let permissions = u16::from_le_bytes([raw[2], raw[3]]);
                let id = u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]);
                entry(index, tag.into(), permissions, id)
            })
            .collect::<Result<_, _>>()?;
        if entries.is_empty() { Ok(None) } else { Self::new(entries).map(Some) }
    }

    /// The Linux form.
    #[must_use]
    pub fn to_xattr(&self) -> Vec<u8> {
        let mut value = XATTR_VERSION.to_le_bytes().to_vec();
        for entry in &self.entries {
            let (tag, id) = entry.tag.words();
            value.extend(tag.to_le_bytes());
            value.extend(u16::from(entry.permissions).to_le_bytes());
            value.extend(id.to_le_bytes());
        }
        value
    }

    /// Decodes the form on disk.
    ///
    /// # Errors
    ///
    /// Which part is wrong.
    pub fn from_disk(value: &[u8]) -> Result<Self, AclError> {
        let body = value.get(HEADER..).unwrap_or_default();
        let fits = value.len() >= HEADER
            && body.len().is_multiple_of(DISK_ENTRY)
            && (body.len() / DISK_ENTRY) as u64 == u64::from(be32(value, 0));
        if !fits {
            return Err(AclError(format!("{} bytes do not match the count", value.len())));
        }
        let entries = body
            .chunks_exact(DISK_ENTRY)
            .enumerate()
            .map(|(index, raw)| entry(index, be32(raw, 0), be16(raw, 8), be32(raw, 4)))
            .collect::<Result<_, _>>()?;
        Self::new(entries)
    }

    /// The form on disk; `None` if the list says no more than the mode and `kind` is the access
    /// list: it is then not stored.
    #[must_use]
    pub fn to_disk(&self, kind: AclKind) -> Option<Vec<u8>> {
        if kind == AclKind::Access && self.entries.len() == 3 {
            return None;
        }
        let mut value = (self.entries.len() as u32).to_be_bytes().to_vec();
        for entry in &self.entries {
            let (tag, id) = entry.tag.words();
            value.extend(u32::from(tag).to_be_bytes());
            value.extend(id.to_be_bytes());
            value.extend(u16::from(entry.permissions).to_be_bytes());
            value.extend([0; 2]);
        }
        Some(value)
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// `mode` with the permissions that this access list gives: owner, mask (or group, without a
    /// mask), others.
    #[must_use]
    pub fn mode(&self, mode: u16) -> u16 {
        self.entries.iter().fold(mode, |mode, entry| {
            self.shift(entry.tag)
                .map_or(mode, |shift| mode & !(7 << shift) | u16::from(entry.permissions) << shift)
        })
    }

    /// Makes the access list follow a changed mode.
    pub fn set_mode(&mut self, mode: u16) {
        for index in 0..self.entries.len() {
            if let Some(shift) = self.shift(self.entries[index].tag) {
                self.entries[index].permissions = (mode >> shift & 7) as u8;
            }
        }
    }

    /// Takes away from an access list the permissions that `mode` does not give: a list that is
    /// handed down to a new file allows no more than the mode that the file is created with.
    pub fn restrict(&mut self, mode: u16) {
        for index in 0..self.entries.len() {
            if let Some(shift) = self.shift(self.entries[index].tag) {
                self.entries[index].permissions &= (mode >> shift & 7) as u8;
            }
        }
    }

    /// Where an entry's permissions stand in the mode, if they do.
    fn shift(&self, tag: AclTag) -> Option<u16> {
        let mask = self.entries.iter().any(|entry| entry.tag == AclTag::Mask);
        match tag {
            AclTag::UserObj => Some(6),
            AclTag::Mask => Some(3),
            AclTag::GroupObj if !mask => Some(3),
            AclTag::Other => Some(0),
            _ => None,
        }
    }
}

/// One entry from its words.
fn entry(index: usize, tag: u32, permissions: u16, id: u32) -> Result<AclEntry, AclError> {
    match AclTag::from_words(tag, id) {
        Some(tag) if permissions <= 7 => Ok(AclEntry { tag, permissions: permissions as u8 }),
        _ => Err(AclError(format!(
            "entry {index} has tag {tag:#x}, id {id} and permissions {permissions:#o}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inode::samples::from_hex;
    use proptest::prelude::*;

    /// u:1000:rwx, g:2000:r-x (docs/format/access-control-lists.md#example).
    fn worked() -> Vec<u8> {
        from_hex(
            "0000000600000001ffffffff0006000000000002000003e80007000000000004ffffffff00040000\
             00000008000007d00005000000000010ffffffff0007000000000020ffffffff00040000",
        )
    }

    #[test]
    fn the_worked_list_of_the_reference() {
        let acl = Acl::from_disk(&worked()).unwrap();
        assert_eq!(acl.entries()[1], AclEntry { tag: AclTag::User(1000), permissions: 7 });
        assert_eq!(acl.to_disk(AclKind::Access), Some(worked()));
        assert_eq!(acl.mode(0o100_600), 0o100_674);
        let linux = acl.to_xattr();
        assert_eq!(linux[..12], [2, 0, 0, 0, 1, 0, 6, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Acl::from_xattr(&linux), Ok(Some(acl)));
    }

    #[test]
    fn a_list_that_equals_the_mode_is_not_stored() {
        let entry = |tag, permissions| AclEntry { tag, permissions };
        let mut acl = Acl::new(vec![
            entry(AclTag::Other, 0),
            entry(AclTag::UserObj, 6),
            entry(AclTag::GroupObj, 4),
        ])
        .unwrap();
        assert_eq!(acl.to_disk(AclKind::Access), None);
        assert_eq!(acl.to_disk(AclKind::Default).map(|value| value.len()), Some(40));
        assert_eq!(acl.mode(0o40_777), 0o40_640);
        acl.set_mode(0o755);
        assert_eq!(acl.mode(0), 0o755);
    }

    #[test]
    fn the_mask_stands_for_the_group() {
        let mut acl = Acl::from_disk(&worked()).unwrap();
        acl.set_mode(0o741);
        let permissions: Vec<_> = acl.entries().iter().map(|entry| entry.permissions).collect();
        assert_eq!(permissions, [7, 7, 4, 5, 4, 1]);
    }

    #[test]
    fn broken_lists_are_refused() {
        let good = worked();
        let broken = |at: usize, value: u8, word: &str| {
            let mut bytes = good.clone();
            bytes[at] = value;
            let message = Acl::from_disk(&bytes).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        };
        broken(3, 5, "count");
        broken(7, 3, "entry 0");
        broken(13, 8, "entry 0");
        broken(55, 0x20, "Other");
        assert!(Acl::from_disk(&[]).is_err());
        assert!(Acl::from_disk(&[0; 4]).is_err());
        assert_eq!(Acl::from_xattr(&[2, 0, 0, 0]), Ok(None));
        assert!(Acl::from_xattr(&[2, 0, 0]).is_err());
        assert!(Acl::from_xattr(&[1, 0, 0, 0]).is_err());
        let no_mask = Acl::from_disk(&good)
            .unwrap()
            .entries()
            .iter()
            .copied()
            .filter(|entry| entry.tag != AclTag::Mask)
            .collect();
        assert!(Acl::new(no_mask).unwrap_err().to_string().contains("0 masks"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_list_or_refused(
            bytes in proptest::collection::vec(0_u8..9, 0..80),
            count in 0_u8..6,
        ) {
            let mut disk = vec![0, 0, 0, count];
            disk.extend(&bytes);
            let mut linux = vec![2, 0, 0, 0];
            linux.extend(&bytes);
            for acl in [Acl::from_disk(&disk).ok(), Acl::from_xattr(&linux).ok().flatten()] {
                let Some(acl) = acl else { continue };
                prop_assert_eq!(Acl::from_xattr(&acl.to_xattr()), Ok(Some(acl.clone())));
                prop_assert_eq!(Acl::from_disk(&acl.to_disk(AclKind::Default).unwrap()), Ok(acl));
            }
        }

        #[test]
        fn lists_of_any_order_survive_both_forms(
            ids in proptest::collection::vec((any::<bool>(), 0_u32..100_000, 0_u8..8), 1..20),
            modes in (0_u8..8, 0_u8..8, 0_u8..8, 0_u8..8),
        ) {
            let mut entries: Vec<_> = ids
                .iter()
                .map(|(user, id, permissions)| AclEntry {
                    tag: if *user { AclTag::User(*id) } else { AclTag::Group(*id) },
                    permissions: *permissions,
                })
                .collect();
            for (tag, permissions) in [
                (AclTag::Other, modes.0),
                (AclTag::Mask, modes.1),
                (AclTag::GroupObj, modes.2),
                (AclTag::UserObj, modes.3),
            ] {
                entries.push(AclEntry { tag, permissions });
            }
            let acl = Acl::new(entries).unwrap();
            prop_assert!(acl.entries().is_sorted_by_key(|entry| entry.tag));
            prop_assert_eq!(Acl::from_xattr(&acl.to_xattr()), Ok(Some(acl.clone())));
            prop_assert_eq!(Acl::from_disk(&acl.to_disk(AclKind::Access).unwrap()), Ok(acl));
        }
    }
}
