//! Directories that are left out until something below them is kept.

use super::cycle::parents;
use crate::{Entry, EntryPath, Exclude};
use std::collections::{BTreeMap, BTreeSet};

/// Held directories. Memory grows with the directories that are left out and may have something
/// below them that is not.
#[derive(Debug, Default)]
pub(super) struct Held {
    held: BTreeMap<EntryPath, Entry>,
    /// Those that were delivered all the same; archives may repeat them.
    released: BTreeSet<EntryPath>,
}

impl Held {
    /// Keeps a directory back if it is left out. Returns what is to be delivered: the entry, and
    /// before it the directories above it that were held.
    pub(super) fn pass(&mut self, exclude: &Exclude, entry: Entry) -> Vec<Entry> {
        // Sources drop everything else that is left out.
        if !exclude.has_includes() {
            return vec![entry];
        }
        if !self.released.contains(&entry.path) && exclude.matches_within(entry.path.as_bytes()) {
            self.held.insert(entry.path.clone(), entry);
            return Vec::new();
        }
        let mut entries = Vec::new();
        if !self.held.is_empty() {
            for parent in parents(&entry.path) {
                if let Some(held) = self.held.remove(&parent) {
                    self.released.insert(parent);
                    entries.push(held);
                }
            }
        }
        entries.push(entry);
        entries
    }

    /// A held directory, for what is added below it.
    pub(super) fn release(&mut self, path: &EntryPath) -> Option<Entry> {
        self.held.remove(path)
    }
}
