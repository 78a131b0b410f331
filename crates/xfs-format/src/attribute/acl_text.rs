//! Access control lists as text: `user::rw-`, `u:1000:r-x`, `mask::rwx` and so on, the form of
//! POSIX 1003.1e draft 17 with numbers for users and groups.

use super::acl::{Acl, AclEntry, AclError, AclTag, sort_by_tag};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for AclEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag {
            AclTag::UserObj => f.write_str("user::")?,
            AclTag::User(id) => write!(f, "user:{id}:")?,
            AclTag::GroupObj => f.write_str("group::")?,
            AclTag::Group(id) => write!(f, "group:{id}:")?,
            AclTag::Mask => f.write_str("mask::")?,
            AclTag::Other => f.write_str("other::")?,
        }
        let letter = |bit: u8, letter| if self.permissions & bit == 0 { '-' } else { letter };
        write!(f, "{}{}{}", letter(4, 'r'), letter(2, 'w'), letter(1, 'x'))
    }
}

impl FromStr for AclEntry {
    type Err = AclError;

    fn from_str(text: &str) -> Result<Self, AclError> {
        let wrong = || {
            let form = "write TYPE:ID:rwx, such as u::rw-, g:1000:r-x, m::rwx or o::---";
            AclError::new(format!("entry {text:?}: {form}"))
        };
        let mut parts = text.split(':');
        let mut part = || parts.next().ok_or_else(wrong);
        let (kind, id, permissions) = (part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(wrong());
        }
        let id: Option<u32> = match id {
            "" => None,
            // The highest number stands for no user at all.
            id => Some(id.parse().ok().filter(|id| *id != u32::MAX).ok_or_else(wrong)?),
        };
        let tag = match (kind, id) {
            ("u" | "user", None) => AclTag::UserObj,
            ("u" | "user", Some(id)) => AclTag::User(id),
            ("g" | "group", None) => AclTag::GroupObj,
            ("g" | "group", Some(id)) => AclTag::Group(id),
            ("m" | "mask", None) => AclTag::Mask,
            ("o" | "other", None) => AclTag::Other,
            _ => return Err(wrong()),
        };
        Ok(Self { tag, permissions: bits(permissions).ok_or_else(wrong)? })
    }
}

/// Permissions as letters in any order with dashes between, or as an octal digit.
fn bits(text: &str) -> Option<u8> {
    if let [digit @ b'0'..=b'7'] = text.as_bytes() {
        return Some(digit - b'0');
    }
    let known = !text.is_empty() && text.bytes().all(|letter| b"rwx-".contains(&letter));
    let bit = |letter| u8::from(text.contains(letter));
    known.then(|| bit('r') << 2 | bit('w') << 1 | bit('x'))
}

impl FromStr for Acl {
    type Err = AclError;

    /// Entries separated by commas or white space. A mask that is needed and left out becomes what
    /// the group and all users and groups named have together.
    fn from_str(text: &str) -> Result<Self, AclError> {
        Self::of_entries(AclEntry::all_of(text)?)
    }
}

impl AclEntry {
    /// Entries separated by commas or white space, as many as there are.
    ///
    /// # Errors
    /// One of them is no entry.
    pub fn all_of(text: &str) -> Result<Vec<Self>, AclError> {
        let words = text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty());
        words.map(Self::from_str).collect()
    }
}

impl Acl {
    /// The list with these entries, each in the place of the one for the same user or group. A mask that
    /// is not among them becomes what it is without one.
    ///
    /// # Errors
    /// Two of them are for the same.
    pub fn with(&self, entries: Vec<AclEntry>) -> Result<Self, AclError> {
        let is_new = |tag: AclTag| entries.iter().any(|entry| entry.tag == tag);
        let kept = self.entries().iter().filter(|entry| !is_new(entry.tag)).copied();
        let kept: Vec<AclEntry> = kept.filter(|entry| entry.tag != AclTag::Mask).collect();
        Self::of_entries([entries, kept].concat())
    }

    /// The list of these entries, in any order; a mask that is needed and left out is added.
    ///
    /// # Errors
    /// Two of them are for the same, or one for owner, group or others is missing.
    pub fn of_entries(mut entries: Vec<AclEntry>) -> Result<Self, AclError> {
        let named = |entry: &AclEntry| matches!(entry.tag, AclTag::User(_) | AclTag::Group(_));
        let masked = entries.iter().any(|entry| entry.tag == AclTag::Mask);
        if entries.iter().any(named) && !masked {
            let limited =
                entries.iter().filter(|entry| named(entry) || entry.tag == AclTag::GroupObj);
            let permissions = limited.fold(0, |all, entry| all | entry.permissions);
            entries.push(AclEntry { tag: AclTag::Mask, permissions });
        }
        sort_by_tag(&mut entries);
        if entries.windows(2).any(|pair| pair[0].tag == pair[1].tag) {
            return Err(AclError::new("an entry is there twice".into()));
        }
        Self::new(entries)
    }
}

impl Acl {
    /// The list that says what a mode says.
    #[must_use]
    pub fn of_mode(mode: u16) -> Self {
        let tags = [AclTag::UserObj, AclTag::GroupObj, AclTag::Other];
        let entries = tags.iter().zip([6, 3, 0]);
        let entry = |(tag, shift): (&AclTag, i32)| AclEntry {
            tag: *tag,
            permissions: (mode >> shift & 7) as u8,
        };
        Self::new(entries.map(entry).collect()).expect("owner, group and others, once each")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(list: &Acl) -> String {
        list.entries().iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn lists_are_read_and_written() {
        let list: Acl = "u::rw-,g:5:x,u:1000:6,g::r--,o::---".parse().unwrap();
        let all = "user::rw-,user:1000:rw-,group::r--,group:5:--x,mask::rwx,other::---";
        assert_eq!(text(&list), all);
        assert_eq!(text(&all.parse().unwrap()), all);
        assert_eq!(text(&Acl::of_mode(0o4754)), "user::rwx,group::r-x,other::r--");
    }

    #[test]
    fn entries_take_the_place_of_others() {
        let list: Acl = "u::rw-,u:5:r--,g::r--,o::---".parse().unwrap();
        let with = |entries: &str| list.with(AclEntry::all_of(entries).unwrap());
        let more = with("u:1000:rw,u:5:x").unwrap();
        let all = "user::rw-,user:5:--x,user:1000:rw-,group::r--,mask::rwx,other::---";
        assert_eq!(text(&more), all);
        let masked = text(&with("m::r").unwrap());
        assert_eq!(masked, "user::rw-,user:5:r--,group::r--,mask::r--,other::---");
        assert!(with("u:7:r,u:7:w").is_err());
    }

    #[test]
    fn text_that_is_no_list_is_refused() {
        for wrong in [
            "",
            "u::rw-",
            "u::rw-,g::r--,o::8",
            "u::rw-,g::r--,o:5:r",
            "u::rw-,g::r--,o::",
            "u::rw-,g::r--,o::r:",
            "u::rw-,g::r--,o::r,u:root:r",
            "u::rw-,g::r--,o::r,u:4294967295:r",
            "u::rw-,g::r--,o::r,u:5:r,u:5:w",
        ] {
            assert!(wrong.parse::<Acl>().is_err(), "{wrong}");
        }
    }
}
