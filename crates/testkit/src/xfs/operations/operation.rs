//! One operation on a tree of files.

use std::ops::Range;
use undercroft_xfs::format::FileType;

/// What to do about a name that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Replace,
    NoReplace,
    Exchange,
}

/// What to do about an attribute that is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    Either,
    Create,
    Replace,
}

/// Paths are relative to the root, without a slash in front.
#[derive(Clone, Debug)]
pub enum Operation {
    Make { path: Vec<u8>, kind: FileType, mode: u16, device: (u32, u32), target: Vec<u8> },
    File { path: Vec<u8>, mode: u16, ranges: Vec<Range<u64>>, seed: u8 },
    Link { from: Vec<u8>, to: Vec<u8> },
    Unlink { path: Vec<u8> },
    Rmdir { path: Vec<u8> },
    Rename { from: Vec<u8>, to: Vec<u8>, mode: Move },
    Mode { path: Vec<u8>, mode: u16 },
    Owner { path: Vec<u8>, uid: u32, gid: u32 },
    Times { path: Vec<u8>, access: i64, modification: i64 },
    SetAttribute { path: Vec<u8>, name: String, value: Vec<u8>, mode: Set },
    RemoveAttribute { path: Vec<u8>, name: String },
}

impl Operation {
    /// Whether the kernel calls it a success to do nothing: removing a list that is not there.
    pub fn is_vague(&self) -> bool {
        matches!(self, Self::RemoveAttribute { name, .. } if name.starts_with("system."))
    }
}

/// The byte of a file of this seed at an offset.
pub fn pattern(seed: u8, offset: u64) -> u8 {
    seed ^ (offset as u8) ^ ((offset >> 9) as u8)
}

/// Splits a path into its directory and its last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}
