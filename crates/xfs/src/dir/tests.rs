//! Directories against a map of names, on volumes of many shapes.

use super::testing::check::{Model, check};
use super::testing::{Shape, TestFork};
use super::*;
use proptest::prelude::*;

const PARENT: InodeNumber = InodeNumber(128);

fn form_of(fork: &mut TestFork) -> Form {
    let layout = DirLayout::new(fork.geometry());
    form(fork, layout).unwrap()
}

/// The thresholds of the algorithms reference, section 7.5: 12-character names, 4 KiB blocks, a
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
    assert_eq!(fork.size(), 5 * 4096);
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
