//! What happens when the store runs out of blocks.

use super::super::insert::Insertion;
use super::super::{Bmbt, Bnobt, Cursor, Lookup, Rmapbt};
use super::samples::Sample;
use super::store::MemoryTree;
use super::structure::check;

/// Inserts until the store has nothing left, for every number of blocks from 0 on: the insertion
/// that fails must leave every byte as it was and give back the blocks it took.
fn refusal_changes_nothing<K: Sample>() {
    for space in 0..40 {
        let mut tree = MemoryTree::<K>::new(K::FANOUT, true, K::FORK);
        tree.space = space;
        let mut cursor = Cursor::new();
        let mut inserted = 0;
        loop {
            // Every third number first, so that splits happen in the middle, too.
            let number = (inserted * 7919) % 5003;
            let record = K::sample(number, 1);
            let (image, left) = (tree.image(), tree.space);
            assert!(!cursor.lookup(&mut tree, &K::key(&record), Lookup::Equal).unwrap());
            match cursor.insert(&mut tree, &record).unwrap() {
                Insertion::Done => inserted += 1,
                Insertion::NoSpace => {
                    assert!(tree.image() == image && tree.space == left);
                    break;
                }
            }
        }
        assert_eq!(check(&tree).len(), inserted as usize);
        // The cursor is still good, and with space the same insertion works.
        tree.space = 10;
        let record = K::sample((inserted * 7919) % 5003, 1);
        assert_eq!(cursor.insert(&mut tree, &record).unwrap(), Insertion::Done);
        assert_eq!(check(&tree).len(), inserted as usize + 1);
    }
}

#[test]
fn refused_insertions_leave_the_tree_alone() {
    refusal_changes_nothing::<Bnobt>();
    refusal_changes_nothing::<Rmapbt>();
    refusal_changes_nothing::<Bmbt>();
}

#[test]
fn misplaced_changes_are_refused() {
    let mut tree = MemoryTree::<Bnobt>::new(Bnobt::FANOUT, true, None);
    let mut cursor = Cursor::new();
    let (one, two) = (Bnobt::sample(1, 1), Bnobt::sample(2, 1));
    // Nowhere yet.
    assert!(cursor.insert(&mut tree, &one).is_err());
    assert!(cursor.delete(&mut tree).is_err());
    assert_eq!(cursor.record(&tree), Ok(None));
    cursor.lookup(&mut tree, &super::super::BlockKey::at(two.start), Lookup::Equal).unwrap();
    assert_eq!(cursor.insert(&mut tree, &two), Ok(Insertion::Done));
    let image = tree.image();
    // At the slot behind the record: a smaller or an equal one does not belong there.
    assert_eq!(cursor.increment(&mut tree), Ok(false));
    assert!(cursor.insert(&mut tree, &one).is_err());
    assert!(cursor.insert(&mut tree, &two).is_err());
    assert!(cursor.update(&mut tree, &two).is_err());
    assert!(cursor.delete(&mut tree).is_err());
    assert!(tree.image() == image);
    assert!(cursor.set_index(&tree, 1) && !cursor.set_index(&tree, 2));
    assert_eq!(cursor.record(&tree), Ok(Some(two)));
}

#[test]
fn the_root_never_grows_beyond_the_limit() {
    let mut tree = MemoryTree::<Bnobt>::new(Bnobt::FANOUT, true, None);
    tree.geometry.max_height = 2;
    let mut cursor = Cursor::new();
    let failure = (0..10_000).find_map(|number| {
        let record = Bnobt::sample(number, 1);
        let key = super::super::BlockKey::at(record.start);
        cursor.lookup(&mut tree, &key, Lookup::Equal).unwrap();
        let image = tree.image();
        let error = cursor.insert(&mut tree, &record).err()?;
        assert!(tree.image() == image);
        Some(error)
    });
    assert_eq!(failure.unwrap().defect.field, "height");
}
