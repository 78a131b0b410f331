//! Everything that must hold in a directory, checked against the names it should have
//! (docs/format/checks.md#directories).

use super::{TestFork, verify};
use crate::da::DaFork;
use crate::dir::form::{Form, form};
use crate::dir::{Entry, Position, iterate};
use crate::format::da_block;
use crate::format::dir_layout::DirLayout;
use crate::format::dir_leaf::{self, NO_BLOCK};
use crate::format::{BufferKind, dir_block, dir_data, dir_free, dir_pairs, dir_shortform};
use crate::units::{FileBlock, InodeNumber};
use std::collections::BTreeMap;

pub(in crate::dir) type Model = BTreeMap<Vec<u8>, Entry>;

/// Checks all of `fork`; `parent` is what ".." names.
pub(in crate::dir) fn check(fork: &mut TestFork, model: &Model, parent: InodeNumber) -> Form {
    let layout = DirLayout::new(fork.geometry());
    for (block, (buffer, _)) in &fork.blocks {
        let bytes = buffer.read();
        verify(bytes.kind(), &bytes, fork.geometry()).unwrap_or_else(|e| panic!("{block}: {e}"));
        let resolved = da_block::resolve_magic(&bytes, bytes.kind(), layout.crc);
        assert_eq!(resolved, Ok(bytes.kind()));
        if layout.crc {
            assert_eq!(da_block::owner(&bytes, bytes.kind()), Some(fork.inode()));
            let blkno = da_block::header_fields(bytes.kind()).unwrap().blkno;
            assert_eq!(crate::bytes::be64(&bytes, blkno), buffer.sector().0, "{block}");
        }
    }
    names(fork, model, parent);
    let form = form(fork, layout).unwrap();
    match form {
        Form::Short => {
            let local = fork.local.clone().unwrap();
            dir_shortform::verify_shortform(&local, layout, fork.geometry()).unwrap();
            assert_eq!(fork.size(), local.len() as u64);
            assert!(fork.blocks.is_empty());
        }
        Form::Block => assert_eq!((fork.size(), fork.blocks.len()), (1 << layout.block_log, 1)),
        Form::Leaf => leaf(fork, layout),
        Form::Node => node(fork, layout),
    }
    form
}

/// The names of a listing, and the order of its positions.
fn names(fork: &mut TestFork, model: &Model, parent: InodeNumber) {
    let (mut found, mut last) = (Model::new(), Position::START);
    let end = iterate(fork, Position::START, |entry| {
        assert!(entry.next > last);
        last = entry.next;
        let value = Entry { inode: entry.inode, ftype: entry.ftype };
        assert!(found.insert(entry.name.to_vec(), value).is_none(), "{entry:?} twice");
        true
    });
    assert_eq!(end.unwrap(), Position::END);
    assert_eq!(found.remove(&b"."[..]).unwrap().inode, fork.inode());
    assert_eq!(found.remove(&b".."[..]).unwrap().inode, parent);
    assert!(found == *model, "{} names instead of {}", found.len(), model.len());
}

/// (hash, pointer) of all entries, sorted, and the longest free length of each data block.
fn data(fork: &mut TestFork, layout: DirLayout) -> (Vec<(u32, u32)>, Vec<u16>) {
    let (mut pairs, mut longest) = (Vec::new(), Vec::new());
    let end = fork.geometry().dir_leaf_block().0;
    for (block, (buffer, _)) in fork.blocks.range(..end) {
        let number = layout.data_block(FileBlock(*block));
        let bytes = buffer.read();
        assert_eq!(bytes.kind(), BufferKind::DirData);
        longest.resize(number as usize, NO_BLOCK);
        longest.push(dir_data::longest(&bytes, layout));
        for found in dir_data::items(&bytes, layout, bytes.len()) {
            let (offset, item) = found.unwrap();
            if let dir_data::Item::Used(entry) = item {
                pairs.push((layout.hash(entry.name), layout.pointer(number, offset)));
            }
        }
    }
    assert_eq!(fork.size(), (longest.len() as u64) << layout.block_log);
    pairs.sort_unstable();
    (pairs, longest)
}

fn live_pairs(bytes: &[u8], layout: DirLayout) -> impl Iterator<Item = (u32, u32)> {
    let base = layout.da().header_size();
    (0..layout.da().count(bytes))
        .map(move |pair| {
            (dir_pairs::hash(bytes, base, pair), dir_pairs::pointer(bytes, base, pair))
        })
        .filter(|(_, pointer)| *pointer != 0)
}

fn leaf(fork: &mut TestFork, layout: DirLayout) {
    let (pairs, longest) = data(fork, layout);
    let root = fork.geometry().dir_leaf_block();
    let buffer = fork.read(root, BufferKind::DirLeaf1).unwrap().unwrap();
    let bytes = buffer.read();
    let mut found: Vec<_> = live_pairs(&bytes, layout).collect();
    found.sort_unstable();
    assert!(found == pairs);
    let bests: Vec<_> =
        (0..dir_leaf::best_count(&bytes)).map(|index| dir_leaf::best(&bytes, index)).collect();
    assert_eq!(bests, longest);
    let needed = pairs.len() * 8 + dir_block::TAIL_SIZE;
    let tail = fork.read(FileBlock(0), BufferKind::DirData).unwrap().unwrap();
    let tail = dir_data::region_before(&tail.read(), layout, layout.block_size()).unwrap();
    assert!(longest.len() > 1 || tail.is_none_or(|tail| tail.len < needed));
}

fn node(fork: &mut TestFork, layout: DirLayout) {
    let (pairs, longest) = data(fork, layout);
    let mut walk = Walk { layout, found: Vec::new(), blocks: 0, last: BTreeMap::new() };
    let root = fork.geometry().dir_leaf_block();
    walk.block(fork, root, None);
    for (level, (block, _)) in &walk.last {
        let buffer = fork.read(*block, BufferKind::DaAny).unwrap().unwrap();
        assert_eq!(da_block::forward(&buffer.read()), None, "last block of level {level}");
    }
    let space = fork.geometry().dir_free_block().0;
    assert_eq!(walk.blocks, fork.blocks.range(root.0..space).count());
    walk.found.sort_unstable();
    assert!(walk.found == pairs);

    let mut bests = Vec::new();
    for (block, (buffer, _)) in fork.blocks.range(space..) {
        let bytes = buffer.read();
        assert_eq!(bytes.kind(), BufferKind::DirFree);
        let first = dir_free::first(&bytes, layout) as usize;
        let index = (block - space) / u64::from(fork.block_blocks());
        assert_eq!(first, index as usize * dir_free::capacity(layout));
        bests.resize(first, NO_BLOCK);
        let valid = dir_free::valid(&bytes, layout);
        bests.extend((0..valid).map(|slot| dir_free::best(&bytes, layout, slot)));
        assert_ne!(bests.last(), Some(&NO_BLOCK));
        assert!(dir_free::used(&bytes, layout) > 0);
    }
    assert_eq!(bests, longest);
}

/// A walk over the hash tree from left to right.
struct Walk {
    layout: DirLayout,
    found: Vec<(u32, u32)>,
    blocks: usize,
    /// Per level: the last block visited and its last hash.
    last: BTreeMap<u16, (FileBlock, u32)>,
}

impl Walk {
    /// Visits a subtree and returns its last hash.
    fn block(&mut self, fork: &mut TestFork, block: FileBlock, level: Option<u16>) -> u32 {
        let da = self.layout.da();
        let buffer = fork.read(block, BufferKind::DaAny).unwrap().unwrap();
        let bytes = buffer.read().to_vec();
        let own = match buffer.read().kind() {
            BufferKind::DaNode => da.level(&bytes),
            BufferKind::DirLeafN => 0,
            kind => panic!("{kind:?} in the hash tree"),
        };
        assert!(level.is_none_or(|level| level == own));
        self.blocks += 1;
        let before = self.last.get(&own).copied();
        assert_eq!(da_block::backward(&bytes), before.map(|(block, _)| block));
        if let Some((left, hash)) = before {
            let left = fork.read(left, BufferKind::DaAny).unwrap().unwrap();
            assert_eq!(da_block::forward(&left.read()), Some(block));
            assert!(da.count(&bytes) == 0 || hash <= da.hash(&bytes, 0));
        }
        let count = da.count(&bytes);
        let last = count.checked_sub(1).map_or(0, |last| da.hash(&bytes, last));
        if own == 0 {
            self.found.extend(live_pairs(&bytes, self.layout));
        } else {
            assert!(level.is_some() || count > 1, "a root with one child");
            for index in 0..count {
                let key = self.block(fork, da.child(&bytes, index), Some(own - 1));
                assert_eq!(key, da.hash(&bytes, index), "key {index} of block {block}");
            }
        }
        self.last.insert(own, (block, last));
        last
    }
}
