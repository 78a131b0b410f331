//! Records overwritten at their places.

use super::super::insert::Insertion;
use super::super::{BtreeKind, Cursor, Inobt, Lookup, overwrite_at};
use super::samples::Sample;
use super::store::MemoryTree;
use super::structure::check;

#[test]
fn a_record_is_overwritten_where_it_is_and_nowhere_else() {
    let mut tree = MemoryTree::<Inobt>::new(Inobt::FANOUT, true, None);
    let mut cursor = Cursor::new();
    for number in 0..200 {
        let record = Inobt::sample(number, 1);
        cursor.lookup(&mut tree, &Inobt::key(&record), Lookup::Equal).unwrap();
        assert_eq!(cursor.insert(&mut tree, &record), Ok(Insertion::Done));
    }
    let (old, new) = (Inobt::sample(77, 1), Inobt::sample(77, 2));
    assert_eq!(cursor.lookup(&mut tree, &Inobt::key(&old), Lookup::Equal), Ok(true));
    let (leaf, index) = cursor.place().unwrap();
    let before = tree.image();
    for beside in [index - 1, index + 1, 0, usize::MAX] {
        assert_eq!(overwrite_at(&mut tree, (leaf, beside), &old, &new), Ok(false), "{beside}");
    }
    assert_eq!(overwrite_at(&mut tree, (leaf, index), &new, &old), Ok(false), "another content");
    assert!(tree.image() == before);
    assert_eq!(overwrite_at(&mut tree, (leaf, index), &old, &new), Ok(true));
    let all = check(&tree);
    let expected = (0..200).map(|number| Inobt::sample(number, if number == 77 { 2 } else { 1 }));
    assert!(all.into_iter().eq(expected));
    assert_eq!(Cursor::<Inobt>::new().place(), None);
}
