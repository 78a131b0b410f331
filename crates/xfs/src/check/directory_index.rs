//! The index of a directory in leaf or node form against its entries: hashes, pointers, longest
//! free lengths (docs/format/directories.md#hash-leaves, docs/format/directories.md#free-index).

use super::directory::{DEFECTS_MAX, Directory};
use super::hash_tree::HashWalk;
use crate::format::dir_leaf::{self, NO_BLOCK};
use crate::format::{BufferKind, dir_free, dir_pairs};
use crate::units::FileBlock;

/// Checks the index of a directory whose data blocks were read.
pub(super) fn check(directory: &mut Directory<'_, '_>) {
    let checker = directory.scan.checker;
    let geometry = checker.geometry();
    let (leaf, free) = (geometry.dir_leaf_block(), geometry.dir_free_block());
    let unit = geometry.dir_block_blocks();
    let mut found: Vec<(u32, u32)> = Vec::with_capacity(directory.listing.entries.len());
    let node_form =
        directory.fork.extents.last().is_some_and(|last| last.end().0 > leaf.0 + u64::from(unit));
    let (blocks, complete) = if node_form {
        let fork = directory.fork;
        let mut walk = HashWalk::new(checker, fork, "directory", unit, BufferKind::DirLeafN);
        let base = directory.layout.da().header_size();
        let layout = directory.layout;
        walk.run(leaf, &mut |_, bytes| {
            pairs(bytes, base, layout.da().count(bytes), &mut found);
        });
        (walk.blocks, walk.complete)
    } else {
        (1, single_leaf(directory, leaf, &mut found))
    };
    if complete {
        let mapped = directory.fork.mapped_between(leaf, free);
        if mapped != blocks * u64::from(unit) {
            let reached = blocks * u64::from(unit);
            directory.error(format!("{mapped} blocks of the index, {reached} can be reached"));
        }
        compare(directory, found);
    }
    if node_form {
        free_index(directory);
    }
}

/// Live pairs of a leaf.
fn pairs(bytes: &[u8], base: usize, count: usize, found: &mut Vec<(u32, u32)>) {
    for index in 0..count {
        let pointer = dir_pairs::pointer(bytes, base, index);
        if pointer != 0 {
            found.push((dir_pairs::hash(bytes, base, index), pointer));
        }
    }
}

/// Leaf form; `false` if the leaf is damaged.
fn single_leaf(
    directory: &Directory<'_, '_>,
    leaf: FileBlock,
    found: &mut Vec<(u32, u32)>,
) -> bool {
    let checker = directory.scan.checker;
    let unit = checker.geometry().dir_block_blocks();
    let block = match directory.fork.read(checker, BufferKind::DirLeaf1, leaf, unit) {
        Ok(block) => block,
        Err(defect) => {
            checker.report_defect("directory", directory.fork.location(leaf), defect);
            return false;
        }
    };
    let (bytes, da) = (&block.bytes, directory.layout.da());
    pairs(bytes, da.header_size(), da.count(bytes), found);
    if directory.listing.exact && directory.listing.complete {
        let bests: Vec<_> =
            (0..dir_leaf::best_count(bytes)).map(|index| dir_leaf::best(bytes, index)).collect();
        if bests != directory.listing.longest {
            directory.error_at(leaf, "longest free lengths differ from the data blocks");
        }
    }
    true
}

/// The pairs of the index are those of the entries.
fn compare(directory: &Directory<'_, '_>, mut found: Vec<(u32, u32)>) {
    if !directory.listing.complete {
        return;
    }
    found.sort_unstable();
    let mut expected: Vec<_> =
        directory.listing.entries.iter().map(|entry| (entry.hash, entry.pointer)).collect();
    expected.sort_unstable();
    if found == expected {
        return;
    }
    let differ = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    let pointer = differ.map_or(0, |(found, expected)| found.min(expected).1);
    let (have, need) = (found.len(), expected.len());
    directory.error(format!(
        "the index has {have} names, the entries {need}; they first differ at pointer {pointer}"
    ));
}

/// The free index holds the longest free length of every data block.
fn free_index(directory: &mut Directory<'_, '_>) {
    let checker = directory.scan.checker;
    let geometry = checker.geometry();
    let (space, unit) = (geometry.dir_free_block(), geometry.dir_block_blocks());
    let end = space.0 + (space.0 - geometry.dir_leaf_block().0);
    let capacity = dir_free::capacity(directory.layout);
    let (mut lengths, mut complete, mut defects) = (Vec::new(), true, 0);
    let fork = directory.fork;
    for at in fork.ahead(checker, fork.units(space.0, end, unit.into()), unit) {
        let block = match directory.fork.read(checker, BufferKind::DirFree, at, unit) {
            Ok(block) => block,
            Err(defect) => {
                checker.report_defect("directory", directory.fork.location(at), defect);
                complete = false;
                defects += 1;
                if defects == DEFECTS_MAX {
                    break;
                }
                continue;
            }
        };
        let bytes: &[u8] = &block.bytes;
        let first = ((at.0 - space.0) / u64::from(unit)).saturating_mul(capacity as u64);
        let found = u64::from(dir_free::first(bytes, directory.layout));
        if found != first {
            directory.error_at(at, format!("firstdb is {found}, expected {first}"));
            complete = false;
        } else if first <= directory.listing.longest.len() as u64 {
            // Data blocks that exist bound the memory.
            lengths.resize(first as usize, NO_BLOCK);
            let valid = dir_free::valid(bytes, directory.layout);
            lengths.extend((0..valid).map(|slot| dir_free::best(bytes, directory.layout, slot)));
        } else {
            directory.error_at(at, "describes data blocks that do not exist");
        }
    }
    while lengths.last() == Some(&NO_BLOCK) {
        lengths.pop();
    }
    let listing = &directory.listing;
    if complete && listing.exact && listing.complete && lengths != listing.longest {
        directory.error_at(space, "longest free lengths differ from the data blocks");
    }
}
