//! POSIX access control lists: from the text in archives to Linux's binary form.
//!
//! Text is what `acl_to_text` prints and what star writes: entries `TAG:QUALIFIER:PERMISSIONS`,
//! separated by commas or line ends, optionally followed by `:ID`. Names of users are not looked up:
//! the result would depend on the host. Entries of the binary form are sorted.

use super::error::Problem;
use crate::acl::{self, GROUP, GROUP_OBJ, MASK, OTHER, USER, USER_OBJ, VERSION};

/// Which of the two lists of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    key: &'static str,
    pub(super) xattr: &'static [u8],
}

pub(super) const ACCESS: Kind = Kind { key: "SCHILY.acl.access", xattr: acl::ACCESS };
pub(super) const DEFAULT: Kind = Kind { key: "SCHILY.acl.default", xattr: acl::DEFAULT };

/// The id of entries that have none.
const NO_ID: u32 = u32::MAX;

/// Tag, id, permissions: in this order they sort as the system wants them.
type Entry = (u16, u32, u16);

/// The binary form, or `None` for a list without entries.
pub(super) fn to_binary(kind: Kind, text: &[u8]) -> Result<Option<Vec<u8>>, Problem> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.split(|byte| matches!(byte, b',' | b'\n' | 0)) {
        let line = line.split(|&byte| byte == b'#').next().unwrap_or(line).trim_ascii();
        if !line.is_empty() {
            let entry = parse_entry(line).map_err(|reason| Problem::Acl {
                key: kind.key,
                entry: line.to_vec(),
                reason,
            })?;
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    entries.sort_unstable();
    let mut binary = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in entries {
        binary.extend_from_slice(&tag.to_le_bytes());
        binary.extend_from_slice(&permissions.to_le_bytes());
        binary.extend_from_slice(&id.to_le_bytes());
    }
    Ok(Some(binary))
}

fn parse_entry(line: &[u8]) -> Result<Entry, &'static str> {
    let mut fields = line.split(|&byte| byte == b':').map(<[u8]>::trim_ascii);
    let tag = fields.next().unwrap_or_default();
    let qualifier = fields.next().ok_or("has no qualifier")?;
    // "other:r--" and "mask:rwx" may leave out the empty qualifier.
    let (qualifier, permissions) = match fields.next() {
        Some(permissions) => (qualifier, permissions),
        None => (&b""[..], qualifier),
    };
    let id = fields.next().unwrap_or(qualifier);
    let tag = match (tag, qualifier.is_empty()) {
        (b"user" | b"u", true) => USER_OBJ,
        (b"user" | b"u", false) => USER,
        (b"group" | b"g", true) => GROUP_OBJ,
        (b"group" | b"g", false) => GROUP,
        (b"mask" | b"m", true) => MASK,
        (b"other" | b"o", true) => OTHER,
        _ => return Err("has an unknown tag"),
    };
    let id = match tag {
        USER | GROUP => std::str::from_utf8(id).ok().and_then(|text| text.parse().ok()).ok_or(
            "has no numeric id; create the archive with tar --xattrs --xattrs-include='*'",
        )?,
        _ => NO_ID,
    };
    Ok((tag, id, parse_permissions(permissions).ok_or("has malformed permissions")?))
}

fn parse_permissions(text: &[u8]) -> Option<u16> {
    // An effective-rights comment may follow after white space.
    let text = text.split(u8::is_ascii_whitespace).next().unwrap_or(text);
    text.iter().try_fold(0, |permissions, byte| match byte {
        b'r' => Some(permissions | 4),
        b'w' => Some(permissions | 2),
        b'x' => Some(permissions | 1),
        b'-' => Some(permissions),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_give_the_sorted_binary_form() {
        let expected = [
            &[2u8, 0, 0, 0][..],
            &[1, 0, 7, 0, 255, 255, 255, 255],
            &[2, 0, 6, 0, 232, 3, 0, 0],
            &[4, 0, 5, 0, 255, 255, 255, 255],
            &[8, 0, 4, 0, 20, 0, 0, 0],
            &[16, 0, 7, 0, 255, 255, 255, 255],
            &[32, 0, 0, 0, 255, 255, 255, 255],
        ]
        .concat();
        for text in [
            "user::rwx,group::r-x,other::---,user:joe:rw-:1000,group:staff:r--:20,mask::rwx",
            "user::rwx\nuser:1000:rw-\ngroup::r-x\ngroup:20:r--\t#effective:r--\nmask:rwx\nother:---\n",
        ] {
            assert_eq!(to_binary(ACCESS, text.as_bytes()).unwrap().unwrap(), expected);
        }
        assert_eq!(to_binary(DEFAULT, b"\n").unwrap(), None);
    }

    #[test]
    fn names_without_numbers_and_nonsense_are_refused() {
        for (text, reason) in [
            ("user:joe:rw-", "numeric"),
            ("user", "qualifier"),
            ("owner::rwx", "tag"),
            ("other:5:rwx", "tag"),
            ("user::rwz", "permissions"),
        ] {
            let problem = to_binary(ACCESS, text.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains(reason) && problem.contains(text), "{problem}");
        }
    }
}
