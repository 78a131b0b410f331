//! Corrupt trees: an error or a result, never a panic and never an endless walk.

use super::samples::Sample;
use super::store::MemoryTree;
use crate::btree::{Bmbt, Bnobt, Cursor, Lookup, Refcountbt, Rmapbt};
use crate::error::TreeCorruption;
use crate::format::verify_tree_block;
use crate::format::{HeaderLayout, TreeKind};
use proptest::prelude::*;
use std::ops::ControlFlow;

const RECORDS: u32 = 600;

fn full_tree<K: Sample>(crc: bool) -> MemoryTree<K> {
    let mut tree = MemoryTree::new(K::FANOUT, crc, K::FORK);
    let mut cursor = Cursor::new();
    for number in 0..RECORDS {
        let record = K::sample(2 * number, 1);
        cursor.lookup(&mut tree, &K::key(&record), Lookup::Equal).unwrap();
        let _ = cursor.insert(&mut tree, &record).unwrap();
    }
    tree
}

/// Every operation once, on a tree of its own each.
fn exercise<K: Sample>(tree: &MemoryTree<K>, number: u32) {
    let record = K::sample(number, 1);
    let key = K::key(&record);
    // Every record can be visited at most once; a few may be there twice after a flip.
    let limit = tree.blocks.len() * tree.geometry.leaf_max.max(tree.geometry.node_max);
    let mut visits = 0;
    let mut count = |_| {
        visits += 1;
        assert!(visits <= limit, "the walk does not end");
        Ok(ControlFlow::Continue(()))
    };
    let _ = Cursor::new().for_each(&mut tree.copy(), &mut count);
    visits = 0;
    let mut count = |_| {
        visits += 1;
        assert!(visits <= limit, "the walk does not end");
        Ok(ControlFlow::Continue(()))
    };
    let high = K::high_key(&K::sample(2 * RECORDS, 1));
    let _ = Cursor::new().for_each_in_range(&mut tree.copy(), &key, &high, &mut count);
    for wanted in [Lookup::LessOrEqual, Lookup::Equal, Lookup::GreaterOrEqual] {
        let mut copy = tree.copy();
        let mut cursor = Cursor::new();
        let _ = cursor.lookup(&mut copy, &key, wanted);
        let _ = cursor.insert(&mut copy, &record);
        let mut copy = tree.copy();
        let mut cursor = Cursor::new();
        let _ = cursor.lookup(&mut copy, &key, wanted);
        let _ = cursor.update(&mut copy, &record);
        for _ in 0..limit {
            if cursor.delete(&mut copy).is_err() {
                break;
            }
        }
        let _ = backwards(&mut tree.copy(), limit);
    }
}

fn backwards<K: Sample>(tree: &mut MemoryTree<K>, limit: usize) -> Result<(), TreeCorruption> {
    let mut cursor = Cursor::new();
    let mut more = cursor.seek_last(tree)?;
    let mut steps = 0;
    while more {
        steps += 1;
        assert!(steps <= limit, "the walk does not end");
        more = cursor.decrement(tree)?;
    }
    Ok(())
}

/// Bytes worth changing more often than others: the header and what follows it.
fn flip() -> impl Strategy<Value = (usize, usize, u8)> {
    let offset = prop_oneof![0..24_usize, 0..4096_usize];
    let value = prop_oneof![Just(0), Just(1), Just(4), Just(5), Just(0xff), any::<u8>()];
    (0..1000_usize, offset, value)
}

macro_rules! survives {
    ($($name:ident: $kind:ty, $crc:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    flips in prop::collection::vec(flip(), 1..12),
                    numbers in prop::collection::vec(0..2 * RECORDS, 1..4),
                ) {
                    let mut tree = full_tree::<$kind>($crc);
                    for (block, offset, value) in flips {
                        tree.corrupt(block, offset, value);
                    }
                    for number in numbers {
                        exercise(&tree, number);
                    }
                }
            )*
        }
    };
}

survives! {
    bnobt: Bnobt, true;
    bnobt_v4: Bnobt, false;
    rmapbt: Rmapbt, true;
    refcountbt: Refcountbt, true;
    bmbt: Bmbt, true;
    bmbt_v4: Bmbt, false;
}

/// What reading says of a tree whose only block got `value` at `offset`.
fn verdict(offset: usize, value: u8) -> TreeCorruption {
    let mut tree = MemoryTree::<Bnobt>::new(Bnobt::FANOUT, true, None);
    // With a record in it, so that siblings alone are not an error.
    tree.corrupt(0, 7, 1);
    tree.corrupt(0, offset, value);
    Cursor::new().seek_first(&mut tree).unwrap_err()
}

#[test]
fn every_header_field_is_checked_and_named() {
    let fields = [
        (0, "magic"),
        (4, "level"),
        (5, "level"),
        (6, "numrecs"),
        (8, "leftsib"),
        (12, "rightsib"),
        (16, "blkno"),
        (48, "owner"),
    ];
    for (offset, field) in fields {
        let error = verdict(offset, 0x33);
        assert_eq!((error.tree, error.block, error.level), (TreeKind::Bnobt, Some(4), 0));
        assert_eq!(error.defect.field, field, "offset {offset}");
    }
}

#[test]
fn the_verifier_of_the_cache_needs_only_the_bytes() {
    let tree = full_tree::<Rmapbt>(true);
    let layout = HeaderLayout::new(TreeKind::Rmapbt, true);
    for buffer in tree.blocks.values() {
        assert_eq!(verify_tree_block(TreeKind::Rmapbt, layout, &buffer.read()), Ok(()));
    }
    let bytes = tree.blocks.values().next().unwrap().read().to_vec();
    let field =
        |tree, layout, bytes: &[u8]| verify_tree_block(tree, layout, bytes).unwrap_err().field;
    assert_eq!(field(TreeKind::Bnobt, layout, &bytes), "magic");
    assert_eq!(field(TreeKind::Rmapbt, HeaderLayout { crc: false, ..layout }, &bytes), "tree");
    assert_eq!(field(TreeKind::Rmapbt, layout, &bytes[..55]), "block size");
    let mut empty = bytes.clone();
    empty[6..8].fill(0);
    assert_eq!(field(TreeKind::Rmapbt, layout, &empty), "numrecs");
}
