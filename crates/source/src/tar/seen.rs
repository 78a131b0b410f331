//! Which paths an archive has named so far.
//!
//! Paths are kept as 128-bit hashes: an archive of two million names takes about 100 MiB whatever
//! their length. Two different paths among them have the same hash with a probability of 10^-26.

use crate::EntryPath;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// What a path was used for, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Offset of the header in the archive.
    pub(super) offset: u64,
    pub(super) directory: bool,
}

/// All paths so far, without the root, which is always a directory.
#[derive(Debug, Default)]
pub(super) struct SeenPaths {
    paths: HashMap<[u64; 2], Seen>,
}

impl SeenPaths {
    pub(super) fn get(&self, path: &[u8]) -> Option<Seen> {
        self.paths.get(&hash(path)).copied()
    }

    /// Records a use of the path; the first use stays.
    pub(super) fn insert(&mut self, path: &EntryPath, seen: Seen) {
        self.paths.entry(hash(path.as_bytes())).or_insert(seen);
    }
}

/// The standard hasher has 256 bits of state; two results are drawn from it.
fn hash(path: &[u8]) -> [u64; 2] {
    let mut hasher = DefaultHasher::new();
    hasher.write(path);
    let first = hasher.finish();
    hasher.write_u8(0xff);
    [first, hasher.finish()]
}
