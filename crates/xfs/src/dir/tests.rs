//! Directories against a map of names, on volumes of many shapes.

use super::testing::check::{Model, check};
use super::testing::{Shape, TestFork};
use super::*;
use crate::format::BufferKind;
use proptest::prelude::*;

mod behaviour;
mod damage;

const PARENT: InodeNumber = InodeNumber(128);

fn form_of(fork: &mut TestFork) -> Form {
    let layout = DirLayout::new(fork.geometry());
    form(fork, layout).unwrap()
}

/// The thresholds of docs/algorithms/hash-trees.md#node-form: 12-character names, 4 KiB blocks, a
/// fork of 192 bytes, three data blocks at the end.
#[test]
fn forms_change_at_the_known_numbers_of_names() {
    let mut fork = TestFork::new(Shape::v5(12, 0), 192);
    let (mut model, mut space) = (Model::new(), SpaceHint::default());
    let name = |number: usize| format!("name{number:08}").into_bytes();
    for number in 1..=501 {
        let entry = Entry { inode: fork.inode_from(1), ftype: EntryType::Regular };
        add(&mut fork, &name(number), entry, &mut space).unwrap();
        model.insert(name(number), entry);
        let expected = match number {
            ..10 => Form::Short,
            10..125 => Form::Block,
            125..501 => Form::Leaf,
            _ => Form::Node,
        };
        assert_eq!(check(&mut fork, &model, PARENT), expected, "{number} names");
    }
    assert_eq!(fork.size(), 3 * 4096);
    for left in (0..=500).rev() {
        let removed = remove(&mut fork, &name(left + 1), &mut space).unwrap();
        assert_eq!(removed, model.remove(&name(left + 1)));
        let expected = match left {
            ..10 => Form::Short,
            10..125 => Form::Block,
            125..501 => Form::Leaf,
            _ => Form::Node,
        };
        assert_eq!(check(&mut fork, &model, PARENT), expected, "{left} names");
    }
}

/// A small generator, so that one seed of the property test makes thousands of operations.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A name of 1 to 255 bytes. Names of one group have one hash: changing two neighbouring bytes
    /// by 1 and 0x80 leaves it.
    fn name(&mut self, groups: usize, max_len: usize) -> Vec<u8> {
        let group = self.below(groups);
        let mut name = format!("{group:x}").into_bytes();
        let len = 1 + Random(group as u64).below(max_len);
        for _ in 0..4 {
            let flip = self.next() & 1 == 1;
            name.extend(if flip { [b'`', 0xe2] } else { [b'a', b'b'] });
        }
        name.resize(name.len().max(len), b'x');
        name
    }
}

/// A directory and the entries that it should hold.
struct Twin {
    fork: TestFork,
    model: Model,
    space: SpaceHint,
    random: Random,
}

impl Twin {
    fn new(shape: Shape, inline_size: usize, seed: u64) -> Self {
        Self {
            fork: TestFork::new(shape, inline_size),
            model: Model::new(),
            space: SpaceHint::default(),
            random: Random(seed),
        }
    }

    fn entry(&mut self) -> Entry {
        let layout = DirLayout::new(self.fork.geometry());
        let seed = self.random.next() as u32;
        let ftype = if layout.ftype { EntryType::Regular } else { EntryType::Unknown };
        Entry { inode: self.fork.inode_from(seed), ftype }
    }

    /// One operation on a random name; `adds` of ten add.
    fn step(&mut self, groups: usize, max_len: usize, adds: usize) {
        let name = self.random.name(groups, max_len);
        let known = self.model.get(&name).copied();
        assert_eq!(lookup(&mut self.fork, &name).unwrap(), known);
        let entry = self.entry();
        if self.random.below(10) < adds {
            match find(&mut self.fork, &name).unwrap() {
                Found::Absent(slot) => {
                    insert(&mut self.fork, slot, &name, entry, &mut self.space).unwrap();
                }
                Found::Entry(_) => {
                    assert_eq!(replace(&mut self.fork, &name, entry).unwrap(), known);
                }
            }
            self.model.insert(name, entry);
        } else {
            assert_eq!(remove(&mut self.fork, &name, &mut self.space).unwrap(), known);
            self.model.remove(&name);
        }
    }

    /// Removes names in random order until `left` are left.
    fn shrink_to(&mut self, left: usize) {
        let mut names: Vec<_> = self.model.keys().cloned().collect();
        while names.len() > left {
            let name = names.swap_remove(self.random.below(names.len()));
            let old = remove(&mut self.fork, &name, &mut self.space).unwrap();
            assert_eq!(old, self.model.remove(&name));
        }
    }

    fn check(&mut self) -> Form {
        self.fork.reload();
        check(&mut self.fork, &self.model, PARENT)
    }
}

/// Grows a directory, lets it live and shrinks it to nothing, with checks all along.
fn live(shape: Shape, seed: u64, names: usize, collisions: usize, max_len: usize) {
    let inline_size = 100 + Random(seed).below(200);
    let mut twin = Twin::new(shape, inline_size, seed);
    let groups = (names / collisions).max(1);
    let mut forms = vec![twin.check()];
    for adds in [9, 9, 9, 5, 3, 8] {
        for _ in 0..names / 3 {
            twin.step(groups, max_len, adds);
        }
        forms.push(twin.check());
    }
    for part in (0..8).rev() {
        twin.shrink_to(twin.model.len() * part / 8);
        forms.push(twin.check());
    }
    assert_eq!(forms.last(), Some(&Form::Short));
    assert!(is_empty(&mut twin.fork).unwrap());
    assert!(twin.fork.blocks.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn directories_hold_what_a_map_holds(
        seed in any::<u64>(),
        collisions in prop_oneof![Just(1_usize), Just(4), Just(15)],
        max_len in prop_oneof![Just(12_usize), Just(60), Just(246)],
    ) {
        for shape in [
            Shape::v5(10, 0),
            Shape::v5(10, 2),
            Shape::v5(12, 0),
            Shape::v4(9, 0, false),
            Shape::v4(9, 1, true),
            Shape { fold_case: true, ..Shape::v5(11, 0) },
        ] {
            for names in [30, 300, 3000] {
                live(shape, seed, names, collisions, max_len);
            }
        }
    }
}

#[test]
fn large_directory_blocks_hold_large_directories() {
    live(Shape::v5(16, 0), 1, 12_000, 2, 20);
    live(Shape::v5(12, 4), 2, 12_000, 16, 40);
}

#[test]
fn trees_of_several_levels_grow_and_shrink() {
    // 62 pairs per block: 20,000 names need more than 62 * 62 leaves.
    let mut twin = Twin::new(Shape::v4(9, 0, false), 100, 7);
    for number in 0..20_000 {
        let (name, entry) = (format!("{number}").into_bytes(), twin.entry());
        add(&mut twin.fork, &name, entry, &mut twin.space).unwrap();
        twin.model.insert(name, entry);
    }
    assert_eq!(twin.check(), Form::Node);
    let root = twin.fork.geometry().dir_leaf_block();
    let layout = DirLayout::new(twin.fork.geometry()).da();
    let level = |fork: &mut TestFork| {
        let root = fork.read(root, BufferKind::DaAny).unwrap().unwrap();
        layout.level(&root.read())
    };
    assert_eq!(level(&mut twin.fork), 2);
    for left in [10_000, 3000, 1000, 300] {
        twin.shrink_to(left);
        twin.check();
    }
    assert!(level(&mut twin.fork) <= 1);
    twin.shrink_to(0);
    assert_eq!(twin.check(), Form::Short);
}
