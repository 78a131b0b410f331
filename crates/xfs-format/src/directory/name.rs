//! Names that entries of directories can have.

use super::layout::MAX_NAME;

/// What keeps a name from being one; `None` for one that leads nowhere else.
#[must_use]
pub fn name_defect(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"." | b".." => "is part of every directory",
        _ if name.is_empty() => "is empty",
        _ if name.len() > MAX_NAME => "is longer than 255 bytes",
        _ if name.contains(&0) || name.contains(&b'/') => "contains a NUL or a slash",
        _ => return None,
    })
}
