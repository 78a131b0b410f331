//! Random sequences of operations against an ordered map.

use super::super::insert::Insertion;
use super::super::{Bmbt, Bnobt, Cntbt, Cursor, Finobt, Inobt, Lookup, Refcountbt, Rmapbt};
use super::samples::Sample;
use super::store::MemoryTree;
use super::structure::check;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Numbers of records range over this.
const NUMBERS: u32 = 3000;

#[derive(Clone, Debug)]
enum Operation {
    /// Insert or update the record.
    Put(u32, u8),
    Delete(u32),
    /// Put `count` records, `stride` apart, upwards or downwards.
    PutRun {
        first: u32,
        count: u32,
        stride: u32,
        down: bool,
    },
    DeleteRun {
        first: u32,
        count: u32,
        stride: u32,
        down: bool,
    },
    /// Delete at the same cursor until the tree or the count ends.
    Drain {
        first: u32,
        count: u32,
    },
    Look(u32),
    Range(u32, u32),
}

fn operation() -> impl Strategy<Value = Operation> {
    let number = 0..NUMBERS;
    let run = || (0..NUMBERS, 1..600_u32, 1..8_u32, any::<bool>());
    prop_oneof![
        4 => (number.clone(), any::<u8>()).prop_map(|(number, variant)| Operation::Put(number, variant)),
        3 => number.clone().prop_map(Operation::Delete),
        4 => run().prop_map(|(first, count, stride, down)| {
            Operation::PutRun { first, count, stride, down }
        }),
        2 => run().prop_map(|(first, count, stride, down)| {
            Operation::DeleteRun { first, count, stride, down }
        }),
        1 => (number.clone(), 1..400_u32).prop_map(|(first, count)| Operation::Drain { first, count }),
        3 => number.clone().prop_map(Operation::Look),
        2 => (number.clone(), number).prop_map(|(a, b)| Operation::Range(a.min(b), a.max(b))),
    ]
}

fn run(first: u32, count: u32, stride: u32, down: bool) -> impl Iterator<Item = u32> {
    (0..count).map(move |step| {
        let step = if down { count - 1 - step } else { step };
        (first + step * stride) % NUMBERS
    })
}

struct Subject<K: Sample> {
    tree: MemoryTree<K>,
    cursor: Cursor<K>,
    model: BTreeMap<K::Key, K::Record>,
}

impl<K: Sample> Subject<K> {
    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Put(number, variant) => self.put(number, variant),
            Operation::Delete(number) => self.delete(number),
            Operation::PutRun { first, count, stride, down } => {
                run(first, count, stride, down).for_each(|number| self.put(number, 1));
            }
            Operation::DeleteRun { first, count, stride, down } => {
                run(first, count, stride, down).for_each(|number| self.delete(number));
            }
            Operation::Drain { first, count } => self.drain(first, count),
            Operation::Look(number) => self.look(number),
            Operation::Range(from, to) => self.range(from, to),
        }
    }

    fn put(&mut self, number: u32, variant: u8) {
        let record = K::sample(number, variant);
        let key = K::key(&record);
        let found = self.cursor.lookup(&mut self.tree, &key, Lookup::Equal).unwrap();
        assert_eq!(found, self.model.insert(key, record).is_some());
        if found {
            self.cursor.update(&mut self.tree, &record).unwrap();
        } else {
            let done = self.cursor.insert(&mut self.tree, &record).unwrap();
            assert_eq!(done, Insertion::Done);
        }
        assert_eq!(self.cursor.record(&self.tree).unwrap(), Some(record));
        self.neighbours(key);
    }

    /// The cursor stays whole after a change: both neighbours can be reached from it.
    fn neighbours(&mut self, key: K::Key) {
        let mut cursor = self.cursor.clone();
        let more = cursor.increment(&mut self.tree).unwrap();
        let after = self.model.range(key..).nth(1).map(|(_, record)| *record);
        assert_eq!(more, after.is_some());
        assert_eq!(cursor.record(&self.tree).unwrap(), after);
        let mut cursor = self.cursor.clone();
        let more = cursor.decrement(&mut self.tree).unwrap();
        let before = self.model.range(..key).next_back().map(|(_, record)| *record);
        assert_eq!(more, before.is_some());
        assert_eq!(cursor.record(&self.tree).unwrap(), before);
    }

    fn delete(&mut self, number: u32) {
        let key = K::key(&K::sample(number, 0));
        let found = self.cursor.lookup(&mut self.tree, &key, Lookup::Equal).unwrap();
        assert_eq!(found, self.model.remove(&key).is_some());
        if found {
            self.cursor.delete(&mut self.tree).unwrap();
            self.expect_following(&key);
        }
    }

    /// After a deletion the cursor is at the record that followed, perhaps one step short of it.
    fn expect_following(&mut self, key: &K::Key) {
        let expected = self.model.range(key..).next().map(|(_, record)| *record);
        let mut cursor = self.cursor.clone();
        if cursor.record(&self.tree).unwrap().is_none() {
            assert_eq!(cursor.increment(&mut self.tree).unwrap(), expected.is_some());
        }
        assert_eq!(cursor.record(&self.tree).unwrap(), expected);
        let mut cursor = self.cursor.clone();
        let before = self.model.range(..key).next_back().map(|(_, record)| *record);
        assert_eq!(cursor.decrement(&mut self.tree).unwrap(), before.is_some());
        assert_eq!(cursor.record(&self.tree).unwrap(), before);
    }

    fn drain(&mut self, first: u32, count: u32) {
        let key = K::key(&K::sample(first, 0));
        self.cursor.lookup(&mut self.tree, &key, Lookup::GreaterOrEqual).unwrap();
        for _ in 0..count {
            if self.cursor.record(&self.tree).unwrap().is_none()
                && !self.cursor.increment(&mut self.tree).unwrap()
            {
                break;
            }
            let record = self.cursor.record(&self.tree).unwrap().unwrap();
            assert_eq!(self.model.remove(&K::key(&record)), Some(record));
            self.cursor.delete(&mut self.tree).unwrap();
        }
    }

    fn look(&mut self, number: u32) {
        let key = K::key(&K::sample(number, 0));
        let before = self.model.range(..=key).next_back().map(|(_, record)| *record);
        let after = self.model.range(key..).next().map(|(_, record)| *record);
        let exact = self.model.get(&key).copied();
        let cases = [
            (Lookup::LessOrEqual, before),
            (Lookup::Equal, exact),
            (Lookup::GreaterOrEqual, after),
        ];
        for (wanted, expected) in cases {
            let found = self.cursor.lookup(&mut self.tree, &key, wanted).unwrap();
            assert_eq!((found, self.cursor.is_active()), (expected.is_some(), expected.is_some()));
            if found {
                assert_eq!(self.cursor.record(&self.tree).unwrap(), expected);
            }
        }
        if after.is_none() {
            // Behind the last record: one step back is the last one.
            let last = self.model.last_key_value().map(|(_, record)| *record);
            assert_eq!(self.cursor.decrement(&mut self.tree).unwrap(), last.is_some());
            assert_eq!(self.cursor.record(&self.tree).unwrap(), last);
            assert!(self.cursor.is_rightmost_leaf(&self.tree));
            assert!(!self.cursor.is_active());
        }
    }

    fn range(&mut self, from: u32, to: u32) {
        let (from, to) = (K::key(&K::sample(from, 0)), K::key(&K::sample(to, 0)));
        let (low, high) = (from.min(to), from.max(to));
        let overlaps = |record: &&K::Record| K::key(record) <= high && K::high_key(record) >= low;
        let expected = self.model.values().filter(overlaps).copied().collect::<Vec<_>>();
        let mut found = Vec::new();
        let visit = |record| {
            found.push(record);
            Ok(ControlFlow::Continue(()))
        };
        self.cursor.for_each_in_range(&mut self.tree, &low, &high, visit).unwrap();
        assert_eq!(found, expected);
    }

    fn verify(&mut self) {
        assert!(check(&self.tree).iter().eq(self.model.values()));
        let mut all = Vec::new();
        let visit = |record| {
            all.push(record);
            Ok(ControlFlow::Continue(()))
        };
        self.cursor.for_each(&mut self.tree, visit).unwrap();
        assert!(all.iter().eq(self.model.values()));
        let last = self.model.last_key_value().map(|(_, record)| *record);
        assert_eq!(self.cursor.seek_last(&mut self.tree).unwrap(), last.is_some());
        assert_eq!(self.cursor.record(&self.tree).unwrap(), last);
    }
}

fn agrees<K: Sample>(operations: &[Operation], crc: bool) {
    let tree = MemoryTree::new(K::FANOUT, crc, K::FORK);
    let mut subject = Subject::<K> { tree, cursor: Cursor::new(), model: BTreeMap::new() };
    for operation in operations {
        subject.apply(operation);
        subject.verify();
    }
    // Empty it again: every block but the last leaf goes back.
    subject.drain(0, u32::MAX);
    for number in 0..NUMBERS {
        subject.delete(number);
    }
    subject.verify();
    assert_eq!(subject.tree.blocks.len(), 1);
}

macro_rules! agreement {
    ($($name:ident: $kind:ty, $crc:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(operations in prop::collection::vec(operation(), 1..40)) {
                    agrees::<$kind>(&operations, $crc);
                }
            )*
        }
    };
}

agreement! {
    bnobt: Bnobt, true;
    bnobt_v4: Bnobt, false;
    cntbt: Cntbt, true;
    inobt: Inobt, true;
    finobt: Finobt, true;
    rmapbt: Rmapbt, true;
    refcountbt: Refcountbt, true;
    bmbt: Bmbt, true;
    bmbt_v4: Bmbt, false;
}

/// The tests above mean something only if their trees are high enough.
#[test]
fn test_trees_have_several_levels() {
    fn height<K: Sample>() -> usize {
        let tree = MemoryTree::new(K::FANOUT, true, K::FORK);
        let mut subject = Subject::<K> { tree, cursor: Cursor::new(), model: BTreeMap::new() };
        run(0, NUMBERS, 1, false).for_each(|number| subject.put(number, 1));
        subject.verify();
        subject.cursor.levels.len()
    }
    assert!(height::<Bnobt>() >= 4);
    assert!(height::<Cntbt>() >= 3);
    assert!(height::<Inobt>() >= 3);
    assert!(height::<Finobt>() >= 5);
    assert!(height::<Rmapbt>() >= 5);
    assert!(height::<Refcountbt>() >= 3);
    assert!(height::<Bmbt>() >= 4);
}

/// Checks the structure after every single change: what one change breaks, the next may mend.
#[test]
fn every_change_leaves_the_structure_whole() {
    fn run<K: Sample>() {
        const COUNT: u32 = 400;
        for step in [1, 7, 63, 149, 211, 399] {
            let tree = MemoryTree::new(K::FANOUT, true, K::FORK);
            let mut subject = Subject::<K> { tree, cursor: Cursor::new(), model: BTreeMap::new() };
            for number in 0..COUNT {
                subject.put(number * 149 % COUNT, 1);
                assert_eq!(check(&subject.tree).len(), subject.model.len());
            }
            for number in 0..COUNT {
                subject.delete(number * step % (COUNT + 1));
                assert_eq!(check(&subject.tree).len(), subject.model.len());
            }
        }
    }
    run::<Rmapbt>();
    run::<Finobt>();
    run::<Bmbt>();
}
