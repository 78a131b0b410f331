//! The entries of a stacked tree in their order: depth first, names sorted by bytes, a directory
//! before its contents, as those of a directory.

use super::tree::{Child, Directory, NodeId, ROOT, Tree};
use crate::entry::{Entry, Kind, Links};
use crate::{EntryPath, Exclude};
use rustc_hash::FxHashMap;
use std::collections::btree_map;

/// How many names the files have that have several, of those that are not excluded.
pub(crate) type LinkCounts = FxHashMap<NodeId, u32>;

/// Counts the names.
pub(crate) fn link_counts(tree: &Tree, exclude: &Exclude) -> LinkCounts {
    let mut counts = LinkCounts::default();
    let mut names = Names::new(tree, exclude);
    // Which nodes were seen once, a bit each.
    let mut seen = vec![0_u64; tree.len().div_ceil(64)];
    while let Some(id) = names.next() {
        if tree.directory(id).is_none() {
            let (word, bit) = (id as usize / 64, 1 << (id % 64));
            if seen[word] & bit != 0 {
                *counts.entry(id).or_insert(1) += 1;
            }
            seen[word] |= bit;
        }
    }
    counts
}

/// The names of a tree, in order.
struct Names<'a> {
    tree: &'a Tree,
    exclude: &'a Exclude,
    levels: Vec<Level<'a>>,
    /// The path of the name that came last.
    path: Vec<u8>,
    /// The root comes first.
    is_begun: bool,
}

/// A directory whose names are being given out.
struct Level<'a> {
    names: btree_map::Iter<'a, Box<[u8]>, Child>,
    /// Length of its path.
    path: usize,
}

impl<'a> Names<'a> {
    fn new(tree: &'a Tree, exclude: &'a Exclude) -> Self {
        Self { tree, exclude, levels: Vec::new(), path: Vec::new(), is_begun: false }
    }

    fn enter(&mut self, directory: &'a Directory) {
        self.levels.push(Level { names: directory.children.iter(), path: self.path.len() });
    }

    /// The node of the next name, whose path is in `path`.
    fn next(&mut self) -> Option<NodeId> {
        if !self.is_begun {
            self.is_begun = true;
            self.enter(self.tree.directory(ROOT)?);
            return Some(ROOT);
        }
        loop {
            let level = self.levels.last_mut()?;
            let Some((name, child)) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            // A stacked tree has no marks.
            let Child::Node(id) = child else { continue };
            self.path.truncate(level.path);
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let directory = self.tree.directory(*id);
            if self.exclude.prunes(&self.path, directory.is_some(), true) {
                continue;
            }
            if let Some(directory) = directory {
                self.enter(directory);
            }
            return Some(*id);
        }
    }
}

/// The entries of a tree.
pub(crate) struct Walk<'a> {
    names: Names<'a>,
    counts: &'a LinkCounts,
    /// First names of files with several, until the last was given out.
    firsts: FxHashMap<NodeId, (EntryPath, u32)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(tree: &'a Tree, exclude: &'a Exclude, counts: &'a LinkCounts) -> Self {
        Self { names: Names::new(tree, exclude), counts, firsts: FxHashMap::default() }
    }

    /// The next entry, and its node if it is no further name of one.
    pub(crate) fn next(&mut self) -> Option<(Entry, NodeId)> {
        let mut id = self.names.next()?;
        let tree = self.names.tree;
        // A root without an entry is not delivered, as archives do not deliver theirs.
        if id == ROOT && tree.directory(ROOT).is_some_and(|root| root.is_implicit) {
            id = self.names.next()?;
        }
        let path = EntryPath::from_checked(self.names.path.clone());
        let node = tree.node(id);
        let metadata = node.metadata;
        let mut links = Links::Single;
        if let Some(count) = self.counts.get(&id) {
            if let Some((first, left)) = self.firsts.get_mut(&id) {
                let kind = Kind::HardLink(first.clone());
                *left -= 1;
                if *left == 0 {
                    self.firsts.remove(&id);
                }
                let xattrs = Vec::new();
                return Some((Entry { path, kind, metadata, xattrs, links, replaces: false }, id));
            }
            links = Links::Several;
            self.firsts.insert(id, (path.clone(), count - 1));
        }
        let (kind, xattrs) = (node.kind(), node.xattrs.to_vec());
        Some((Entry { path, kind, metadata, xattrs, links, replaces: false }, id))
    }
}
