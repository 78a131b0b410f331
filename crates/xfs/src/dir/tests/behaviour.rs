//! Single properties of directories.

use super::*;
use crate::error::ErrorKind;

fn fill(twin: &mut Twin, names: usize) {
    for number in 0..names {
        let (name, entry) = (format!("name {number}").into_bytes(), twin.entry());
        add(&mut twin.fork, &name, entry, &mut twin.space).unwrap();
        twin.model.insert(name, entry);
    }
}

/// An entry in a group of its own, with a number of 32 bits.
fn narrow(number: u64) -> Entry {
    Entry { inode: InodeNumber(8192 + number), ftype: EntryType::Symlink }
}

#[test]
fn a_listing_can_stop_anywhere_and_go_on() {
    for names in [0, 5, 100, 400, 3000] {
        let mut twin = Twin::new(Shape::v5(12, 0), 200, 3);
        fill(&mut twin, names);
        let (mut all, mut position, mut left) = (Model::new(), Position::START, 0);
        while position != Position::END {
            left = left % 7 + 1;
            let mut room = left;
            position = iterate(&mut twin.fork, position, |entry| {
                let value = Entry { inode: entry.inode, ftype: entry.ftype };
                assert!(all.insert(entry.name.to_vec(), value).is_none());
                room -= 1;
                room > 0
            })
            .unwrap();
            position = Position::from_raw(position.to_raw());
        }
        assert_eq!(all.len(), names + 2);
        twin.model.iter().for_each(|(name, entry)| assert_eq!(all[name], *entry));
    }
    assert_eq!(Position::from_raw(u64::MAX), Position::END);
}

#[test]
fn positions_outlast_changes_of_form() {
    let mut twin = Twin::new(Shape::v5(12, 0), 300, 3);
    fill(&mut twin, 8);
    let listing = |fork: &mut TestFork| {
        let mut found = Vec::new();
        iterate(fork, Position::START, |entry| {
            found.push((entry.name.to_vec(), entry.next));
            true
        })
        .unwrap();
        found
    };
    let before = listing(&mut twin.fork);
    fill_more(&mut twin, 600);
    let after = listing(&mut twin.fork);
    assert_eq!(form_of(&mut twin.fork), Form::Node);
    assert_eq!(after[..before.len()], before);
    twin.shrink_to(0);
    assert_eq!(form_of(&mut twin.fork), Form::Short);
}

fn fill_more(twin: &mut Twin, names: usize) {
    for number in 0..names {
        let (name, entry) = (format!("further {number}").into_bytes(), twin.entry());
        add(&mut twin.fork, &name, entry, &mut twin.space).unwrap();
        twin.model.insert(name, entry);
    }
}

#[test]
fn wide_inode_numbers_widen_and_narrow_the_short_form() {
    let mut fork = TestFork::new(Shape::v5(12, 0), 60);
    let mut space = SpaceHint::default();
    let (wide, mut model) = (InodeNumber(1 << 40 | 8192), Model::new());
    for (number, name) in [b"a", b"b", b"c"].into_iter().enumerate() {
        add(&mut fork, name, narrow(number as u64), &mut space).unwrap();
        model.insert(name.to_vec(), narrow(number as u64));
    }
    assert_eq!(fork.size(), 6 + 3 * 9);
    let entry = Entry { inode: wide, ftype: EntryType::Regular };
    assert_eq!(replace(&mut fork, b"b", entry).unwrap(), model.insert(b"b".to_vec(), entry));
    assert_eq!(fork.size(), 10 + 3 * 13);
    assert_eq!(check(&mut fork, &model, PARENT), Form::Short);

    set_parent(&mut fork, wide).unwrap();
    assert_eq!(remove(&mut fork, b"b", &mut space).unwrap(), model.remove(&b"b"[..]));
    assert_eq!(fork.size(), 10 + 2 * 13);
    set_parent(&mut fork, PARENT).unwrap();
    assert_eq!(fork.size(), 6 + 2 * 9);
    assert_eq!(check(&mut fork, &model, PARENT), Form::Short);

    // 6 + 5 * 9 fit 60 bytes, 10 + 5 * 13 do not.
    for (number, name) in [b"d", b"e", b"f"].into_iter().enumerate() {
        add(&mut fork, name, narrow(number as u64), &mut space).unwrap();
        model.insert(name.to_vec(), narrow(number as u64));
    }
    set_parent(&mut fork, wide).unwrap();
    assert_eq!(parent(&mut fork).unwrap(), wide);
    assert_eq!(check(&mut fork, &model, wide), Form::Block);
    set_parent(&mut fork, PARENT).unwrap();
    assert_eq!(check(&mut fork, &model, PARENT), Form::Block);
    remove(&mut fork, b"f", &mut space).unwrap();
    model.remove(&b"f"[..]);
    assert_eq!(check(&mut fork, &model, PARENT), Form::Short);
}

#[test]
fn short_form_uses_a_gap_when_the_end_of_the_block_is_taken() {
    // Seven entries of 112 bytes fit 1 KiB in block form, but not behind a gap of one.
    let mut fork = TestFork::new(Shape::v5(10, 0), 900);
    let (mut space, mut model) = (SpaceHint::default(), Model::new());
    let name = |letter: u8| vec![letter; 100];
    for letter in b'a'..=b'e' {
        add(&mut fork, &name(letter), narrow(1), &mut space).unwrap();
        model.insert(name(letter), narrow(1));
    }
    assert_eq!(check(&mut fork, &model, PARENT), Form::Short);
    remove(&mut fork, &name(b'b'), &mut space).unwrap();
    model.remove(&name(b'b'));
    for letter in [b'f', b'g', b'h'] {
        add(&mut fork, &name(letter), narrow(1), &mut space).unwrap();
        model.insert(name(letter), narrow(1));
        assert_eq!(check(&mut fork, &model, PARENT), Form::Short);
    }
    let mut order = Vec::new();
    iterate(&mut fork, Position::START, |entry| {
        order.push(entry.name[0]);
        true
    })
    .unwrap();
    assert_eq!(order, b"..ahcdefg");
    add(&mut fork, &name(b'i'), narrow(1), &mut space).unwrap();
    model.insert(name(b'i'), narrow(1));
    assert_ne!(check(&mut fork, &model, PARENT), Form::Short);
}

#[test]
fn case_is_kept_but_not_compared_where_the_volume_says_so() {
    for names in [3, 50, 2000] {
        let shape = Shape { fold_case: true, ..Shape::v5(10, 0) };
        let mut twin = Twin::new(shape, 200, 3);
        for number in 0..names {
            let name = format!("File {number}").into_bytes();
            let entry = twin.entry();
            add(&mut twin.fork, &name, entry, &mut twin.space).unwrap();
            twin.model.insert(name, entry);
        }
        let entry = twin.model[&b"File 1"[..]];
        assert_eq!(lookup(&mut twin.fork, b"fILE 1").unwrap(), Some(entry));
        let again = add(&mut twin.fork, b"FILE 1", entry, &mut twin.space);
        assert!(matches!(again, Err(Error::Exists(_))));
        twin.check();
        assert_eq!(remove(&mut twin.fork, b"FILE 1", &mut twin.space).unwrap(), Some(entry));
        twin.model.remove(&b"File 1"[..]);
        twin.check();
    }
}

#[test]
fn impossible_names_and_inodes_are_refused() {
    let mut fork = TestFork::new(Shape::v5(12, 0), 200);
    let mut space = SpaceHint::default();
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b", &[b'x'; 256]] {
        let Found::Absent(slot) = find(&mut fork, b"new").unwrap() else { panic!("it exists") };
        let refused = insert(&mut fork, slot, name, narrow(1), &mut space);
        let kind = match name.len() {
            256.. => ErrorKind::NameTooLong,
            _ => ErrorKind::Invalid,
        };
        assert_eq!(refused.unwrap_err().kind(), kind, "{name:?}");
        assert_eq!(remove(&mut fork, name, &mut space).unwrap_err().kind(), kind);
    }
    for inode in [0, 1, u64::MAX, 1 << 56] {
        let entry = Entry { inode: InodeNumber(inode), ftype: EntryType::Regular };
        assert!(matches!(add(&mut fork, b"new", entry, &mut space), Err(Error::Invalid(_))));
    }
    check(&mut fork, &Model::new(), PARENT);
}

/// The cost of an add does not grow with the directory: blocks read per add stay few.
#[test]
fn adding_many_names_reads_few_blocks_each() {
    let mut fork = TestFork::new(Shape::v5(12, 0), 200);
    let mut space = SpaceHint::default();
    let mut add_up_to = |from: u64, to: u64| {
        let before = fork.reads;
        for number in from..to {
            let name = format!("{number}-{}", "x".repeat(number as usize % 40));
            add(&mut fork, name.as_bytes(), narrow(number % 1000), &mut space).unwrap();
        }
        (fork.reads - before) as f64 / (to - from) as f64
    };
    add_up_to(0, 20_000);
    assert!(add_up_to(20_000, 30_000) < 6.1);
    add_up_to(30_000, 140_000);
    assert!(add_up_to(140_000, 150_000) < 7.1);
}
