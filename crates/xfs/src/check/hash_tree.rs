//! A walk over the hash tree of a directory or of attributes: levels, order, links, keys.

use super::checker::Checker;
use super::forks::Fork;
use crate::format::da_block::{self, DaLayout, MAX_NODE_LEVEL};
use crate::format::{AttrLeafLayout, BufferKind};
use crate::units::FileBlock;
use undercroft_block::Buffer;

/// Blocks with defects after which the rest of one tree is left out.
const DEFECTS_MAX: u32 = 64;

/// What visits the sound leaves.
pub(super) type LeafVisitor<'v> = dyn FnMut(FileBlock, &Buffer) + 'v;

/// A walk in progress.
pub(super) struct HashWalk<'a> {
    checker: &'a Checker,
    fork: &'a Fork,
    structure: &'static str,
    layout: DaLayout,
    /// File blocks per block of the tree.
    unit: u32,
    /// Kind of a leaf.
    leaf: BufferKind,
    /// Blocks that were read.
    pub(super) blocks: u64,
    /// Whether no part was left out.
    pub(super) complete: bool,
    defects: u32,
    /// Per level: last block with its forward link and last hash; `None` after damage.
    last: [Option<(FileBlock, Option<FileBlock>, u32)>; MAX_NODE_LEVEL as usize + 1],
}

impl<'a> HashWalk<'a> {
    pub(super) fn new(
        checker: &'a Checker,
        fork: &'a Fork,
        structure: &'static str,
        unit: u32,
        leaf: BufferKind,
    ) -> Self {
        let layout = DaLayout::new(checker.geometry(), unit);
        let last = [None; MAX_NODE_LEVEL as usize + 1];
        let (blocks, complete, defects) = (0, true, 0);
        Self { checker, fork, structure, layout, unit, leaf, blocks, complete, defects, last }
    }

    /// Walks the tree from its root and hands every leaf to `visit`, from left to right.
    pub(super) fn run(&mut self, root: FileBlock, visit: &mut LeafVisitor<'_>) {
        self.block(root, None, None, visit);
        for (block, forward, _) in self.last.into_iter().flatten() {
            if let Some(forward) = forward {
                self.error(block, format!("forw of the last block is {forward}"));
            }
        }
        if !self.complete {
            self.checker.set_incomplete();
        }
    }

    fn error(&mut self, block: FileBlock, what: impl Into<String>) {
        self.defects += 1;
        self.checker.error(self.structure, self.fork.location(block), what);
    }

    fn lose(&mut self) {
        self.complete = false;
        self.last.fill(None);
    }

    /// Visits a subtree at `level`, whose last hash the node above says is `key`.
    fn block(
        &mut self,
        at: FileBlock,
        level: Option<u16>,
        key: Option<u32>,
        visit: &mut LeafVisitor<'_>,
    ) {
        if self.defects >= DEFECTS_MAX {
            return self.lose();
        }
        let (block, sound) = match self.fork.read(self.checker, BufferKind::DaAny, at, self.unit) {
            Ok(block) => (block, true),
            Err(defect) => {
                self.defects += 1;
                let location = self.fork.location(at);
                match self.checker.report_defect(self.structure, location, defect) {
                    Some(block) => (block, false),
                    None => return self.lose(),
                }
            }
        };
        self.blocks += 1;
        let own = match block.kind {
            BufferKind::DaNode => self.layout.level(&block.bytes),
            kind if kind == self.leaf => 0,
            kind => {
                self.error(at, format!("a {} is here", kind.name()));
                return self.lose();
            }
        };
        if level.is_some_and(|level| level != own) || own > MAX_NODE_LEVEL {
            self.error(at, format!("level is {own}, expected {}", level.unwrap_or(0)));
            return self.lose();
        }
        if !sound && own > 0 {
            return self.lose();
        }
        let hashes = sound.then(|| self.hashes(&block.bytes, own));
        self.links(at, own, &block.bytes, hashes);
        if let (Some(key), Some(Some((_, last)))) = (key, hashes)
            && key != last
        {
            self.error(at, format!("last hash is {last:#010x}, the node above says {key:#010x}"));
        }
        if own == 0 {
            self.complete &= sound;
            if sound {
                visit(at, &block.bytes);
            }
            return;
        }
        let (fork, checker, layout, unit) = (self.fork, self.checker, self.layout, self.unit);
        let children = (0..layout.count(&block.bytes)).map(|at| layout.child(&block.bytes, at));
        for (index, child) in fork.ahead(checker, children, unit).enumerate() {
            let hash = layout.hash(&block.bytes, index);
            self.block(child, Some(own - 1), Some(hash), visit);
        }
    }

    /// First and last hash of a block; `None` if it is empty.
    fn hashes(&self, bytes: &[u8], level: u16) -> Option<(u32, u32)> {
        if level == 0 && self.leaf == BufferKind::AttrLeaf {
            let layout = AttrLeafLayout::new(self.checker.geometry());
            let last = layout.count(bytes).checked_sub(1)?;
            return Some((layout.hash(bytes, 0), layout.hash(bytes, last)));
        }
        let last = self.layout.count(bytes).checked_sub(1)?;
        Some((self.layout.hash(bytes, 0), self.layout.hash(bytes, last)))
    }

    /// Checks the links to the neighbour on the left, and the order of hashes across it.
    fn links(
        &mut self,
        at: FileBlock,
        level: u16,
        bytes: &[u8],
        hashes: Option<Option<(u32, u32)>>,
    ) {
        let (back, forward) = (da_block::backward(bytes), da_block::forward(bytes));
        let slot = usize::from(level);
        let mut last_hash = hashes.flatten().map_or(0, |(_, last)| last);
        match self.last[slot] {
            Some((before, link, hash)) => {
                if link != Some(at) {
                    let link = link.map_or(0, |link| link.0);
                    self.error(before, format!("forw is {link}, the next block is {at}"));
                }
                if back != Some(before) {
                    let back = back.map_or(0, |back| back.0);
                    self.error(at, format!("back is {back}, expected {before}"));
                }
                if let Some(Some((first, _))) = hashes
                    && first < hash
                {
                    self.error(at, "starts with a hash below the last one of the block before");
                }
                last_hash = last_hash.max(hash);
            }
            None => {
                if self.complete
                    && let Some(back) = back
                {
                    self.error(at, format!("back of the first block is {back}"));
                }
            }
        }
        self.last[slot] = Some((at, forward, last_hash));
    }
}
