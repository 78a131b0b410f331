//! A walk over a whole B+tree, of a group or of a fork, that survives damage.
//!
//! The engine's cursor stops at the first defect; this walk reports it, leaves the subtree out and
//! goes on. The records of a damaged subtree are unknown, so [`TreeContent::complete`] says whether
//! the records are all of them.

use super::Location;
use super::checker::Checker;
use crate::btree::{BlockPointer, BtreeKind};
use crate::cache::BufferAddress;
use crate::format::{BufferKind, HeaderLayout, TreeGeometry};
use undercroft_block::{Buffer, Sector};

/// Children of a node that are on their way while those before them are checked.
const CHILDREN_AHEAD: usize = 32;

/// Records of one tree and the blocks that hold them.
#[derive(Debug)]
pub(super) struct TreeContent<K: BtreeKind> {
    /// Records in the order of the tree.
    pub(super) records: Vec<K::Record>,
    /// Blocks, root included (the one in an inode not).
    pub(super) blocks: Vec<K::Pointer>,
    /// Whether no part of the tree was left out.
    pub(super) complete: bool,
}

impl<K: BtreeKind> Default for TreeContent<K> {
    fn default() -> Self {
        Self { records: Vec::new(), blocks: Vec::new(), complete: true }
    }
}

/// Where the blocks of a tree are.
pub(super) trait Home {
    type Pointer: BlockPointer;

    /// Whether a block of the tree can be there.
    fn contains(&self, pointer: Self::Pointer) -> bool;
    fn sector(&self, pointer: Self::Pointer) -> Sector;
    fn location(&self, pointer: Self::Pointer) -> Location;
    /// Group or inode in the headers of the blocks.
    fn owner(&self) -> u64;
}

/// The entry of a node about a child.
#[derive(Clone, Copy)]
struct Expected<K: BtreeKind> {
    low: K::Key,
    high: K::Key,
}

/// Lowest and highest key of a subtree.
type Bounds<K> = Option<(<K as BtreeKind>::Key, <K as BtreeKind>::Key)>;

/// A walk in progress.
pub(super) struct TreeWalk<'a, K: BtreeKind, H> {
    checker: &'a Checker,
    home: &'a H,
    geometry: &'a TreeGeometry,
    content: TreeContent<K>,
    /// Last block seen on each level, to check the sibling links; `None` after damage.
    last: Vec<Option<(K::Pointer, K::Pointer)>>,
    started: Vec<bool>,
    last_key: Option<K::Key>,
    /// Level of blocks that may be underfull: the root, or the children of a root in an inode.
    exempt: usize,
}

impl<'a, K: BtreeKind, H: Home<Pointer = K::Pointer>> TreeWalk<'a, K, H> {
    fn new(checker: &'a Checker, home: &'a H, levels: usize) -> Self {
        Self {
            checker,
            home,
            geometry: checker.volume.tree_geometry(K::TREE),
            content: TreeContent::default(),
            last: vec![None; levels],
            started: vec![false; levels],
            last_key: None,
            exempt: levels.saturating_sub(1),
        }
    }

    /// Walks a tree whose root is a block; `levels` is at least 1.
    pub(super) fn rooted(
        checker: &'a Checker,
        home: &'a H,
        root: K::Pointer,
        levels: usize,
    ) -> TreeContent<K> {
        let mut walk = Self::new(checker, home, levels);
        walk.block(root, levels - 1, None);
        walk.finish()
    }

    /// Walks the subtrees of a root in an inode, at `level` at least 1.
    pub(super) fn below(
        checker: &'a Checker,
        home: &'a H,
        level: usize,
        children: &[(K::Key, K::Pointer)],
    ) -> TreeContent<K> {
        let mut walk = Self::new(checker, home, level);
        let pointers = children.iter().map(|(_, pointer)| *pointer);
        walk.read_ahead(&pointers.take(CHILDREN_AHEAD).collect::<Vec<_>>());
        for (key, pointer) in children {
            walk.block(*pointer, level - 1, Some(Expected { low: *key, high: *key }));
        }
        walk.finish()
    }

    fn finish(self) -> TreeContent<K> {
        for (pointer, right) in self.last.iter().flatten() {
            if *right != K::Pointer::NONE {
                let what = format!("rightsib of the last block is {}", right.number());
                self.checker.error(K::TREE.name(), self.home.location(*pointer), what);
            }
        }
        self.content
    }

    /// Begins to read blocks of the tree.
    fn read_ahead(&self, pointers: &[K::Pointer]) {
        let inside = pointers.iter().filter(|pointer| self.home.contains(**pointer));
        let sectors = (self.geometry.block_size / 512) as u32;
        let address =
            |pointer: &K::Pointer| BufferAddress::contiguous(self.home.sector(*pointer), sectors);
        self.checker.read_ahead(inside.map(address));
    }

    fn error(&self, pointer: K::Pointer, what: impl Into<String>) {
        self.checker.error(K::TREE.name(), self.home.location(pointer), what);
    }

    /// Leaves a subtree out.
    fn lose(&mut self, level: usize) {
        self.content.complete = false;
        self.checker.set_incomplete();
        self.last[..=level].fill(None);
        self.started[..=level].fill(false);
        self.last_key = None;
    }

    fn block(&mut self, pointer: K::Pointer, level: usize, expected: Option<Expected<K>>) {
        let Some(bytes) = self.load(pointer, level) else {
            self.lose(level);
            return;
        };
        self.content.blocks.push(pointer);
        self.check_siblings(pointer, level, &bytes);
        let count = usize::from(HeaderLayout::numrecs(&bytes));
        if level != self.exempt && count < self.geometry.min_entries(level) {
            let least = self.geometry.min_entries(level);
            self.error(pointer, format!("numrecs is {count}, at least {least} are needed"));
        }
        let bounds = if level == 0 {
            self.leaf(pointer, &bytes, count)
        } else {
            self.node(pointer, level, &bytes, count)
        };
        if let (Some(expected), Some((low, high))) = (expected, bounds) {
            if low != expected.low {
                let key = expected.low;
                self.error(pointer, format!("starts at {low:?}, the key above it is {key:?}"));
            }
            if K::OVERLAPPING && high != expected.high {
                let key = expected.high;
                self.error(pointer, format!("ends at {high:?}, the high key above it is {key:?}"));
            }
        }
    }

    fn load(&self, pointer: K::Pointer, level: usize) -> Option<Buffer> {
        if !self.home.contains(pointer) {
            self.error(pointer, format!("pointer {} leads out of range", pointer.number()));
            return None;
        }
        let sector = self.home.sector(pointer);
        if !self.checker.first_visit(sector) {
            self.error(pointer, "the block is used twice");
            return None;
        }
        let parts = [(sector, (self.geometry.block_size / 512) as u32)];
        let kind = BufferKind::Tree(K::TREE);
        let block = match self.checker.read_block(kind, &parts, self.home.owner()) {
            Ok(block) => block,
            Err(defect) => {
                let location = self.home.location(pointer);
                self.checker.report_defect(K::TREE.name(), location, defect);
                return None;
            }
        };
        let found = HeaderLayout::level(&block.bytes);
        if usize::from(found) != level {
            self.error(pointer, format!("level is {found}, expected {level}"));
            return None;
        }
        Some(block.bytes)
    }

    fn check_siblings(&mut self, pointer: K::Pointer, level: usize, bytes: &[u8]) {
        let left = K::Pointer::load(bytes, self.geometry.layout.left());
        let right = K::Pointer::load(bytes, self.geometry.layout.right());
        match self.last[level] {
            Some((before, link)) => {
                if link != pointer {
                    let (found, next) = (link.number(), pointer.number());
                    self.error(before, format!("rightsib is {found}, the next block is {next}"));
                }
                if left != before {
                    let (found, before) = (left.number(), before.number());
                    self.error(pointer, format!("leftsib is {found}, expected {before}"));
                }
            }
            None if self.content.complete && !self.started[level] && left != K::Pointer::NONE => {
                self.error(pointer, format!("leftsib of the first block is {}", left.number()));
            }
            None => {}
        }
        self.started[level] = true;
        self.last[level] = Some((pointer, right));
    }

    fn leaf(&mut self, pointer: K::Pointer, bytes: &[u8], count: usize) -> Bounds<K> {
        let base = self.geometry.layout.header_len();
        let mut bounds: Bounds<K> = None;
        for index in 0..count {
            let at = base + index * K::RECORD_LEN;
            let record = K::decode(&bytes[at..at + K::RECORD_LEN], self.geometry);
            if let Err(defect) = K::validate(&record) {
                self.error(pointer, format!("record {index}: {defect}"));
                self.content.complete = false;
                self.checker.set_incomplete();
                continue;
            }
            let (low, high) = (K::key(&record), K::high_key(&record));
            if self.last_key.is_some_and(|last| last >= low) {
                self.error(pointer, format!("record {index} is out of order: {record:?}"));
            }
            self.last_key = Some(low);
            bounds = Some(bounds.map_or((low, high), |(first, last)| (first, last.max(high))));
            self.content.records.push(record);
        }
        bounds
    }

    fn node(&mut self, own: K::Pointer, level: usize, bytes: &[u8], count: usize) -> Bounds<K> {
        let base = self.geometry.layout.header_len();
        let stride = if K::OVERLAPPING { 2 * K::KEY_LEN } else { K::KEY_LEN };
        let pointers = base + self.geometry.node_max * stride;
        let mut bounds: Bounds<K> = None;
        let child = |index| K::Pointer::load(bytes, pointers + index * K::Pointer::LEN);
        for index in 0..count {
            if index % CHILDREN_AHEAD == 0 {
                let next = index..count.min(index + 2 * CHILDREN_AHEAD);
                self.read_ahead(&next.map(child).collect::<Vec<_>>());
            }
            let at = base + index * stride;
            let low = K::decode_key(&bytes[at..at + K::KEY_LEN]);
            let high = if K::OVERLAPPING {
                K::decode_key(&bytes[at + K::KEY_LEN..at + stride])
            } else {
                low
            };
            if bounds.is_some_and(|(first, _)| low < first) {
                self.error(own, format!("key {index} is out of order: {low:?}"));
            }
            self.block(child(index), level - 1, Some(Expected { low, high }));
            bounds = Some(bounds.map_or((low, high), |(first, last)| (first, last.max(high))));
        }
        bounds
    }
}
