//! Which names of a directory were met.
//!
//! Names are kept as 128-bit hashes with a secret, so names with equal hashes cannot be chosen; two
//! of a million names meet with a probability of 10^-27.

use rustc_hash::FxBuildHasher;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The secret.
pub(super) type NameHasher = RandomState;

/// A set of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Hashes, which need no further hashing with a secret.
    hashes: HashSet<[u64; 2], FxBuildHasher>,
}

impl Names {
    /// Adds a name; says whether it was not there.
    pub(super) fn insert(&mut self, hasher: &NameHasher, name: &[u8]) -> bool {
        // The standard hasher has 256 bits of state; two results are drawn from it.
        let mut state = hasher.build_hasher();
        state.write(name);
        let first = state.finish();
        state.write_u8(0xff);
        self.hashes.insert([first, state.finish()])
    }
}
