//! Checks of a whole tree: every rule of the format about its blocks.

use super::super::frame::Frame;
use super::super::node::Node;
use super::super::{BlockPointer, ReadTree, Root};
use super::samples::Sample;
use super::store::{MemoryTree, TestPointer};
use crate::format::HeaderLayout;
use std::collections::BTreeSet;

struct Walk<'a, K: Sample> {
    tree: &'a MemoryTree<K>,
    records: Vec<K::Record>,
    reached: BTreeSet<u64>,
    /// Blocks per level, left to right.
    levels: Vec<Vec<u64>>,
    /// Highest level whose blocks may not be underfull.
    filled_below: usize,
}

/// Checks the tree and gives its records in order.
pub(super) fn check<K: Sample>(tree: &MemoryTree<K>) -> Vec<K::Record> {
    let (height, exempt) = match tree.root() {
        Root::Block { height, .. } => (usize::from(height), 1),
        // The children of a root inside an inode may be underfull, too.
        Root::Inline(root) => (usize::from(root.level()) + 1, 2),
    };
    let mut walk = Walk {
        tree,
        records: Vec::new(),
        reached: BTreeSet::new(),
        levels: vec![Vec::new(); height],
        filled_below: height.saturating_sub(exempt),
    };
    match tree.root() {
        Root::Block { pointer, .. } => {
            walk.block(pointer, height - 1);
        }
        Root::Inline(root) => {
            let node = Node::inline(root, Frame::inline(&tree.geometry, root));
            assert!(node.count() >= 1);
            walk.children(&node, height - 1);
        }
    }
    for blocks in &walk.levels {
        check_siblings(tree, blocks);
    }
    let all = tree.blocks.keys().copied().collect::<BTreeSet<_>>();
    assert_eq!(walk.reached, all, "blocks taken and blocks reached differ");
    assert!(walk.records.is_sorted_by(|a, b| K::key(a) < K::key(b)));
    walk.records
}

impl<K: Sample> Walk<'_, K> {
    fn block(&mut self, pointer: K::Pointer, level: usize) -> Option<(K::Key, K::Key)> {
        assert!(self.reached.insert(pointer.number()), "block reached twice");
        self.levels[level].push(pointer.number());
        let tree = self.tree;
        let buffer = &tree.blocks[&pointer.number()];
        assert_eq!(usize::from(HeaderLayout::level(&buffer.read())), level);
        let node = Node::<K>::block(buffer, Frame::block(&tree.geometry, level));
        if level < self.filled_below {
            assert!(node.count() >= tree.geometry.min_entries(level), "underfull at {level}");
        }
        if level == 0 {
            self.records.extend((1..=node.count()).map(|index| node.record(index)));
        } else {
            let is_block_root = self.levels.len() == level + 1;
            assert!(node.count() >= if is_block_root { 2 } else { 1 });
            self.children(&node, level);
        }
        node.bounds()
    }

    fn children(&mut self, node: &Node<'_, K>, level: usize) {
        for index in 1..=node.count() {
            let Some((low, high)) = self.block(node.pointer(index), level - 1) else {
                assert_eq!((level, node.count()), (1, 1), "only a lone leaf may be empty");
                continue;
            };
            assert_eq!(node.key(index), low, "low key");
            if K::OVERLAPPING {
                assert_eq!(node.high_key(index), high, "high key");
            }
        }
    }
}

fn check_siblings<K: Sample>(tree: &MemoryTree<K>, blocks: &[u64]) {
    for (place, block) in blocks.iter().enumerate() {
        let buffer = &tree.blocks[block];
        let node = Node::<K>::block(buffer, Frame::block(&tree.geometry, 0));
        let neighbour = |place: Option<usize>| {
            place.and_then(|place| blocks.get(place)).copied().map(K::Pointer::from_number)
        };
        assert_eq!(node.left(), neighbour(place.checked_sub(1)), "left sibling");
        assert_eq!(node.right(), neighbour(Some(place + 1)), "right sibling");
    }
}
