//! Blocks of the B+trees, with every record and key in them, and roots inside inodes.

use crate::blocks::block;
use crate::input::Input;
use std::hint::black_box;
use undercroft_xfs::format::verify_tree_block;
use undercroft_xfs::format::{
    AllocRecord, BmapRoot, BufferKind, Extent, FieldDefect, HeaderLayout, InodeChunkRecord,
    RefcountRecord, RmapKey, RmapRecord, TreeKind, block_capacity,
};

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let tree = TreeKind::ALL[usize::from(input.byte()) % TreeKind::ALL.len()];
    let fuzzed = block(BufferKind::Tree(tree), input);
    let (bytes, features) = (&fuzzed.bytes[..], &fuzzed.geometry.features);
    let layout = HeaderLayout::new(tree, features.crc);
    if verify_tree_block(tree, layout, bytes).map_err(|defect| defect.to_string()).is_ok() {
        let (level, count) = (HeaderLayout::level(bytes), HeaderLayout::numrecs(bytes));
        let (leaf_max, node_max) = block_capacity(tree, layout, bytes.len());
        let body = &bytes[layout.header_len()..];
        if level == 0 {
            records(tree, features.sparse_inodes(), body, body.len() / leaf_max.max(1), count);
        } else if tree == TreeKind::Rmapbt {
            // Entries have two keys of 20 bytes and a pointer.
            assert!(usize::from(count) <= node_max, "more entries than there is room for");
            body.chunks_exact(20).take(2 * usize::from(count)).for_each(|key| {
                let decoded = RmapKey::decode(key);
                let mut again = [0; 20];
                decoded.encode(&mut again);
                assert_eq!(RmapKey::decode(&again), decoded, "a key changes when it is written");
            });
        }
        black_box((layout.owner(bytes), layout.blkno(bytes), layout.is_alone(bytes)));
    }
    root(bytes);
}

/// Decodes and judges the records of a leaf.
fn records(tree: TreeKind, sparse: bool, body: &[u8], len: usize, count: u16) {
    let text = |verdict: Result<(), FieldDefect>| verdict.map_err(|defect| defect.to_string());
    for record in body.chunks_exact(len.min(body.len())).take(count.into()) {
        let verdict = match tree {
            TreeKind::Bnobt | TreeKind::Cntbt => {
                let decoded = AllocRecord::decode(record);
                black_box(decoded.end());
                text(decoded.validate())
            }
            TreeKind::Inobt | TreeKind::Finobt => {
                let decoded = InodeChunkRecord::decode(record, sparse);
                let free = decoded.allocatable().count_ones();
                assert!(free <= decoded.existing().count_ones(), "free inodes that do not exist");
                text(decoded.validate())
            }
            TreeKind::Rmapbt => {
                let decoded = RmapRecord::decode(record);
                assert!(decoded.key() <= decoded.high_key(), "a mapping ends before it starts");
                text(decoded.validate())
            }
            TreeKind::Refcountbt => {
                let decoded = RefcountRecord::decode(record);
                black_box(decoded.key());
                text(decoded.validate())
            }
            TreeKind::Bmbt => {
                let decoded = Extent::decode(record);
                assert!(decoded.end() >= decoded.offset, "an extent ends before it starts");
                text(decoded.validate())
            }
        };
        drop(verdict);
    }
}

/// Takes the block as the root of a mapping in an inode, whose fork can have any length.
fn root(bytes: &[u8]) {
    let len = usize::from(bytes[bytes.len() - 1]) * 8;
    let Some(fork) = bytes.get(..len) else { return };
    if let Ok(root) = BmapRoot::decode(fork).map_err(|defect| defect.to_string()) {
        assert!(root.entries().count() == root.len(), "entries of a root are missing");
        for room in [0, 16, 24, len, 2 * len] {
            let resized = root.resized(room);
            let same = resized.is_none_or(|other| other.entries().eq(root.entries()));
            assert!(same, "a root changes when its fork is resized");
        }
    }
}
