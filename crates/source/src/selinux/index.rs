//! Entries found by the beginning of a path.
//!
//! The distinct prefixes of all expressions are sorted, and each knows the longest other one that it
//! begins with. Of those that a path begins with, all are in the chain from the last one that sorts
//! before the path: a prefix of the path between the two would be a prefix of that one, too.

use super::spec::{LabelledKind, Spec};
use std::collections::BTreeMap;

/// Prefixes, sorted.
#[derive(Debug, Default)]
pub(super) struct Index {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    prefix: Box<[u8]>,
    /// The longest prefix that this one begins with.
    parent: Option<usize>,
    /// Places of the entries with this prefix in the order of precedence, highest first.
    specs: Vec<usize>,
}

impl Index {
    pub(super) fn new(specs: &[Spec]) -> Self {
        let mut by_prefix: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (place, spec) in specs.iter().enumerate().rev() {
            by_prefix.entry(spec.expression.prefix()).or_default().push(place);
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(by_prefix.len());
        for (prefix, specs) in by_prefix {
            let mut parent = nodes.len().checked_sub(1);
            while let Some(node) = parent.filter(|node| !prefix.starts_with(&nodes[*node].prefix)) {
                parent = nodes[node].parent;
            }
            nodes.push(Node { prefix: prefix.into(), parent, specs });
        }
        Self { nodes }
    }

    /// The entry of highest precedence for a path.
    pub(super) fn find<'a>(
        &self,
        specs: &'a [Spec],
        path: &[u8],
        kind: LabelledKind,
    ) -> Option<&'a Spec> {
        let mut best: Option<usize> = None;
        for Node { prefix, specs: places, .. } in self.chain(path) {
            let Some(rest) = path.strip_prefix(&**prefix) else { continue };
            let higher = places.iter().take_while(|place| best.is_none_or(|best| **place > best));
            if let Some(place) = higher.copied().find(|place| specs[*place].matches(rest, kind)) {
                best = Some(place);
            }
        }
        best.map(|place| &specs[place])
    }

    /// All prefixes that a path begins with, and perhaps others, longest first.
    fn chain(&self, path: &[u8]) -> impl Iterator<Item = &Node> {
        let last = self.nodes.partition_point(|node| *node.prefix <= *path).checked_sub(1);
        let node = |at: usize| &self.nodes[at];
        std::iter::successors(last.map(node), move |last| last.parent.map(node))
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Reader;
    use super::*;

    #[test]
    fn a_path_meets_the_entries_that_begin_as_it_does() {
        let mut reader = Reader::default();
        for number in 0..10_000 {
            reader.line(format!("/opt/p{number}/.* u:r:t").as_bytes()).unwrap();
        }
        reader.line(b"/.* u:r:t").unwrap();
        reader.line(b"/opt/p1?(/.*)? u:r:t").unwrap();
        let index = Index::new(&reader.finish());
        for (path, most) in
            [("/opt/p9999/x", 3), ("/opt/p1/x", 3), ("/opt/", 2), ("/zzz", 3), ("", 0)]
        {
            let met: usize = index.chain(path.as_bytes()).map(|node| node.specs.len()).sum();
            assert!(met <= most, "{path}: {met}");
        }
    }
}
