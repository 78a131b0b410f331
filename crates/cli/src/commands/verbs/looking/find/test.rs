//! One test of a file.

use super::candidate::Candidate;
use anyhow::Result;
use globset::GlobMatcher;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::{FileType, Timestamp};

/// A number, or the numbers above or below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Exactly(u64),
    More(u64),
    Less(u64),
}

impl Count {
    fn takes(self, count: u64) -> bool {
        match self {
            Self::Exactly(wanted) => count == wanted,
            Self::More(least) => count > least,
            Self::Less(most) => count < most,
        }
    }
}

/// Permission bits that a file is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permissions {
    Exactly(u16),
    AllOf(u16),
    AnyOf(u16),
}

/// One test.
pub(super) enum Test {
    Name(GlobMatcher),
    Path(GlobMatcher),
    Kind(Vec<FileType>),
    /// In units of so many bytes, rounded up.
    Size {
        count: Count,
        unit: u64,
    },
    Empty,
    NewerThan(Timestamp),
    User(u32),
    Group(u32),
    Permissions(Permissions),
    Attribute(GlobMatcher),
    Links(Count),
    Number(Count),
}

impl Test {
    pub(super) fn holds(&self, file: &Candidate<'_>) -> Result<bool> {
        let metadata = file.metadata;
        Ok(match self {
            Self::Name(glob) => glob.is_match(OsStr::from_bytes(name_of(file.path))),
            Self::Path(glob) => glob.is_match(OsStr::from_bytes(file.path)),
            Self::Kind(kinds) => kinds.contains(&metadata.kind),
            Self::Size { count, unit } => count.takes(metadata.size.div_ceil(*unit)),
            Self::Empty => is_empty(file)?,
            Self::NewerThan(time) => metadata.modified > *time,
            Self::User(uid) => metadata.uid == *uid,
            Self::Group(gid) => metadata.gid == *gid,
            Self::Permissions(Permissions::Exactly(mode)) => metadata.mode == *mode,
            Self::Permissions(Permissions::AllOf(mode)) => metadata.mode & mode == *mode,
            Self::Permissions(Permissions::AnyOf(mode)) => *mode == 0 || metadata.mode & mode != 0,
            Self::Attribute(glob) => {
                let names = file.session.fs.nodes().list_xattrs(metadata.number)?;
                names.iter().any(|name| glob.is_match(OsStr::from_bytes(name)))
            }
            Self::Links(count) => count.takes(metadata.nlink.into()),
            Self::Number(count) => count.takes(metadata.number.0),
        })
    }
}

/// The last name of a path; that of the root is `/`.
fn name_of(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = &path[..end];
    let name = path.iter().rposition(|byte| *byte == b'/').map_or(path, |slash| &path[slash + 1..]);
    if name.is_empty() { b"/" } else { name }
}

/// Whether a file has no bytes, or a directory no names.
fn is_empty(file: &Candidate<'_>) -> Result<bool> {
    let metadata = file.metadata;
    if !metadata.is_dir() {
        return Ok(metadata.is_file() && metadata.size == 0);
    }
    let mut is_empty = true;
    file.session.fs.nodes().readdir(metadata.number, 0, |entry| {
        is_empty = entry.name == b"." || entry.name == b"..";
        is_empty
    })?;
    Ok(is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_last_of_paths() {
        for (path, name) in [("/", "/"), ("/a", "a"), ("/a/b", "b"), ("a", "a"), ("/a/b/", "b")] {
            assert_eq!(name_of(path.as_bytes()), name.as_bytes());
        }
    }
}
