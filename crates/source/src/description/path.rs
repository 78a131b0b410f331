//! Names in a description as paths in the tree.

use super::error::{DescriptionProblem, cut};
use crate::EntryPath;
use crate::entry::{MAX_NAME, MAX_PATH};

/// The path of decoded components. Empty ones and `.` mean nothing.
pub(super) fn of_components<C: AsRef<[u8]>>(
    components: impl IntoIterator<Item = C>,
) -> Result<EntryPath, DescriptionProblem> {
    let mut path = Vec::new();
    for component in components {
        let component = component.as_ref();
        if matches!(component, b"" | b".") {
            continue;
        }
        check_name(component)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(component);
    }
    if path.len() > MAX_PATH {
        return Err(DescriptionProblem::PathLength(path.len()));
    }
    // All of them are in memory at once.
    path.shrink_to_fit();
    Ok(EntryPath::from_checked(path))
}

/// The path of a name in a directory.
pub(super) fn child(directory: &EntryPath, name: &[u8]) -> Result<EntryPath, DescriptionProblem> {
    check_name(name)?;
    let path = directory.join(name);
    let length = path.as_bytes().len();
    if length > MAX_PATH { Err(DescriptionProblem::PathLength(length)) } else { Ok(path) }
}

fn check_name(name: &[u8]) -> Result<(), DescriptionProblem> {
    let reason = match name {
        b"" => "is empty",
        b"." | b".." => "cannot be that of an entry; write paths without \"..\"",
        name if name.contains(&0) => "has a zero byte",
        name if name.contains(&b'/') => "has a slash, which no name can have",
        name if name.len() > MAX_NAME => return Err(DescriptionProblem::NameLength(name.len())),
        _ => return Ok(()),
    };
    Err(DescriptionProblem::Name { name: cut(name), reason })
}
