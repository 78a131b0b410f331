//! Names in an archive as paths in the tree.

use super::error::Problem;
use crate::EntryPath;
use crate::entry::{MAX_NAME, MAX_PATH};

/// The path that an archive means with `raw`: `.` components, repeated and trailing slashes are left
/// out. `./` and the like are the root.
pub(super) fn clean(raw: &[u8], strip_absolute: bool) -> Result<EntryPath, Problem> {
    if raw.is_empty() {
        return Err(Problem::EmptyName);
    }
    if raw.contains(&0) {
        return Err(Problem::NulInName);
    }
    if raw[0] == b'/' && !strip_absolute {
        return Err(Problem::AbsolutePath);
    }
    let mut path = Vec::with_capacity(raw.len());
    for component in raw.split(|&byte| byte == b'/') {
        match component {
            b"" | b"." => continue,
            b".." => return Err(Problem::ParentComponent),
            long if long.len() > MAX_NAME => return Err(Problem::NameLength(long.len())),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(component);
    }
    if path.len() > MAX_PATH {
        return Err(Problem::PathLength(path.len()));
    }
    Ok(EntryPath::from_checked(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(raw: &[u8]) -> Vec<u8> {
        clean(raw, false).unwrap().as_bytes().to_vec()
    }

    #[test]
    fn dots_and_extra_slashes_mean_nothing() {
        assert_eq!(cleaned(b"./a//b/./c/"), b"a/b/c");
        assert_eq!(cleaned(b"./"), b"");
        assert_eq!(cleaned(b"..a/b.."), b"..a/b..");
        assert_eq!(clean(b"/a/b", true).unwrap().as_bytes(), b"a/b");
    }

    #[test]
    fn names_that_leave_the_tree_or_fit_nowhere_are_refused() {
        let long = [b'x'; MAX_NAME + 1];
        let deep = b"ab/".repeat(MAX_PATH / 3 + 1);
        for (raw, text) in [
            (&b""[..], "empty"),
            (b"/a", "absolute"),
            (b"a/../b", ".."),
            (b"a\0b", "zero byte"),
            (&long, "256 bytes"),
            (&deep, "the most is 16384"),
        ] {
            let problem = clean(raw, false).unwrap_err().to_string();
            assert!(problem.contains(text), "{problem}");
        }
    }
}
