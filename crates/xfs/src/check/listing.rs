//! The entries in the data blocks of a directory, to be compared with its index.

use crate::format::dir_leaf::NO_BLOCK;

/// An entry as the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Indexed {
    pub(super) hash: u32,
    /// Sum of the name, to tell equal hashes apart.
    pub(super) name: u64,
    pub(super) pointer: u32,
}

/// The entries in the data blocks of a directory.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) entries: Vec<Indexed>,
    /// Longest free length of each data block, [`NO_BLOCK`] for holes.
    pub(super) longest: Vec<u16>,
    /// Whether all entries could be read.
    pub(super) complete: bool,
    /// Whether all lengths are known.
    pub(super) exact: bool,
}

impl Default for Listing {
    fn default() -> Self {
        Self { entries: Vec::new(), longest: Vec::new(), complete: true, exact: true }
    }
}

impl Listing {
    pub(super) fn push(&mut self, hash: u32, pointer: u32, name: u64) {
        self.entries.push(Indexed { hash, name, pointer });
    }

    pub(super) fn set_longest(&mut self, block: u32, len: u16) {
        self.longest.resize(block as usize, NO_BLOCK);
        self.longest.push(len);
    }

    pub(super) fn sort(&mut self) {
        self.entries.sort_unstable();
    }
}
