//! Attributes against a model, in all forms and sizes.

use super::memory_fork::{Key, MemoryFork, Model};
use super::parent::{self, ParentPointer};
use super::*;
use crate::Error;
use crate::da::DaFork;
use crate::format::{Incompat, Namespace, ShortformBuilder};
use crate::units::{FileBlock, InodeNumber};
use proptest::prelude::*;
use undercroft_judges::rounds;

fn key(attribute: &Attribute<'_>) -> Key {
    let identity = match attribute.namespace {
        Namespace::Parent => attribute.value.to_vec(),
        _ => Vec::new(),
    };
    (attribute.namespace, attribute.name.to_vec(), identity)
}

/// Reads everything back through the public functions.
fn read_all(fork: &mut MemoryFork) -> Model {
    let mut model = Model::new();
    for_each(fork, &mut |attribute| {
        assert!(model.insert(key(attribute), attribute.value.to_vec()).is_none());
        Ok(())
    })
    .unwrap();
    model
}

#[derive(Clone, Debug)]
struct Step {
    namespace: Namespace,
    name: Vec<u8>,
    value: usize,
    remove: bool,
    mode: SetMode,
}

fn step() -> impl Strategy<Value = Step> {
    let namespace = prop_oneof![
        4 => Just(Namespace::User),
        1 => Just(Namespace::Trusted),
        1 => Just(Namespace::Security),
        2 => Just(Namespace::Parent),
    ];
    let length = prop_oneof![6 => 1_usize..20, 1 => Just(254_usize), 1 => Just(255)];
    let value = prop_oneof![
        8 => 0_usize..40,
        3 => Just(254_usize),
        1 => Just(255),
        1 => Just(256),
        2 => 200_usize..800,
        2 => 2000_usize..3100,
        1 => 3060_usize..3075,
        1 => Just(49100_usize),
        1 => Just(65536),
    ];
    let mode = prop_oneof![8 => Just(SetMode::Either), 1 => Just(SetMode::Create), 1 => Just(SetMode::Replace)];
    (namespace, 0_u8..12, length, value, prop::bool::weighted(0.4), mode).prop_map(
        |(namespace, letter, length, value, remove, mode)| Step {
            namespace,
            name: vec![b'a' + letter; length],
            value,
            remove,
            mode,
        },
    )
}

/// Does one step to the fork and to the model, which decides what must come of it.
fn apply(fork: &mut MemoryFork, model: &mut Model, step: &Step, number: usize) {
    let value: Vec<u8> = match step.namespace {
        Namespace::Parent => ParentPointer {
            name: &step.name,
            parent: InodeNumber((step.value as u64) << 30),
            generation: 5,
        }
        .value()
        .to_vec(),
        _ => (0..step.value).map(|at| (at * 7 + number) as u8).collect(),
    };
    let attribute = Attribute { namespace: step.namespace, name: &step.name, value: &value };
    let exists = model.contains_key(&key(&attribute));
    if step.remove {
        assert_eq!(remove(fork, &attribute).unwrap(), exists);
        model.remove(&key(&attribute));
        return;
    }
    let result = set(fork, &attribute, step.mode);
    match (step.mode, exists) {
        (SetMode::Create, true) => assert!(matches!(result, Err(Error::Exists(_)))),
        (SetMode::Replace, false) => assert!(matches!(result, Err(Error::NoAttribute(_)))),
        _ => {
            result.unwrap();
            model.insert(key(&attribute), value.clone());
        }
    }
    if step.namespace != Namespace::Parent {
        let found = get(fork, step.namespace, &step.name).unwrap();
        assert_eq!(found.as_ref(), model.get(&key(&attribute)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_changes_match_the_model(
        block_log in prop_oneof![Just(10_u8), Just(12), Just(16)],
        inode_log in 9_u8..12,
        parents: bool,
        crc: bool,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut fork = MemoryFork::new(block_log, inode_log.min(block_log));
        if !parents {
            fork.geometry.features.incompat.remove(Incompat::PARENT);
        }
        fork.geometry.features.crc = crc;
        let mut model = Model::new();
        for (number, step) in steps.iter().enumerate() {
            apply(&mut fork, &mut model, step, number);
            if number % 8 == 0 {
                prop_assert!(fork.check() == model);
            }
        }
        prop_assert!(fork.check() == model);
        prop_assert!(read_all(&mut fork) == model);
        for ((namespace, name, identity), _) in model {
            let attribute = Attribute { namespace, name: &name, value: &identity };
            prop_assert!(remove(&mut fork, &attribute).unwrap());
        }
        prop_assert!(fork.check().is_empty() && fork.block_count() == 0);
    }

    #[test]
    fn storing_all_at_once_is_like_one_by_one(
        block_log in prop_oneof![Just(10_u8), Just(12)],
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let mut fork = MemoryFork::new(block_log, 9);
        let mut model = Model::new();
        for (number, step) in steps.iter().filter(|step| !step.remove).enumerate() {
            let value = if step.namespace == Namespace::Parent {
                vec![number as u8; 12]
            } else {
                vec![number as u8; step.value]
            };
            let attribute =
                Attribute { namespace: step.namespace, name: &step.name, value: &value };
            model.insert(key(&attribute), value);
        }
        let attributes: Vec<_> = model
            .iter()
            .map(|((namespace, name, _), value)| Attribute { namespace: *namespace, name, value })
            .collect();
        // In two parts that overlap, as an inode may have its parent pointer first.
        let parts = (attributes.len() / 3, attributes.len() / 2);
        set_all(&mut fork, &attributes[..parts.1]).unwrap();
        set_all(&mut fork, &attributes[parts.0..]).unwrap();
        prop_assert!(fork.check() == model);
        if let Some(first) = attributes.first() {
            let twice = [*first, *first];
            let mut fork = MemoryFork::new(12, 9);
            prop_assert!(matches!(set_all(&mut fork, &twice), Err(Error::Exists(_))));
        }
    }
}

/// `count` user names of one hash: bytes 32 apart are rotated alike, so swapping a bit between
/// them changes nothing.
fn colliding_names(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let mut name = vec![b'x'; 72];
            for bit in 0..12 {
                if number >> bit & 1 != 0 {
                    name[bit] ^= 1;
                    name[bit + 32] ^= 1;
                }
            }
            name
        })
        .collect()
}

#[test]
fn equal_hashes_may_fill_many_leaves() {
    let names = colliding_names(1500);
    let mut fork = MemoryFork::new(10, 9);
    let mut model = Model::new();
    for name in &names {
        let attribute = Attribute { namespace: Namespace::User, name, value: &name[..9] };
        set(&mut fork, &attribute, SetMode::Create).unwrap();
        model.insert(key(&attribute), name[..9].to_vec());
    }
    for (index, name) in (0..60).map(|number| format!("n{number}").into_bytes()).enumerate() {
        let attribute =
            Attribute { namespace: Namespace::Trusted, name: &name, value: &[index as u8] };
        set(&mut fork, &attribute, SetMode::Either).unwrap();
        model.insert(key(&attribute), vec![index as u8]);
    }
    assert!(fork.check() == model);
    for name in names.iter().step_by(7) {
        assert_eq!(get(&mut fork, Namespace::User, name).unwrap().as_deref(), Some(&name[..9]));
        assert_eq!(get(&mut fork, Namespace::Security, name).unwrap(), None);
    }
    for name in names.iter().rev() {
        let attribute = Attribute { namespace: Namespace::User, name, value: &[] };
        assert!(remove(&mut fork, &attribute).unwrap());
        model.remove(&key(&attribute));
    }
    assert!(fork.check() == model);
}

#[test]
fn big_neighbours_take_three_leaves() {
    let mut fork = MemoryFork::new(12, 9);
    let mut names: Vec<_> = (0..3).map(|number| vec![b'a' + number]).collect();
    names.sort();
    // Hashes of single letters are in order; the middle one comes last.
    for (name, size) in [(0, 2000), (2, 1900), (1, 3050)] {
        let value = vec![7; size];
        let attribute = Attribute { namespace: Namespace::User, name: &names[name], value: &value };
        set(&mut fork, &attribute, SetMode::Create).unwrap();
        fork.check();
    }
    assert_eq!(fork.block_count(), 4);
}

#[test]
fn forms_change_where_the_reference_says() {
    let mut fork = MemoryFork::new(12, 9);
    let attribute = |value| Attribute { namespace: Namespace::User, name: b"a", value };
    // 280 bytes is the most beside three pointers; an entry needs 4 + 3 + 1 + value.
    set(&mut fork, &attribute(&[1; 254]), SetMode::Either).unwrap();
    assert!(fork.is_local());
    set(&mut fork, &attribute(&[1; 255]), SetMode::Either).unwrap();
    assert_eq!((fork.is_local(), fork.block_count()), (false, 1));
    set(&mut fork, &attribute(&[1; 3064]), SetMode::Either).unwrap();
    assert_eq!(fork.block_count(), 1);
    set(&mut fork, &attribute(&[1; 3065]), SetMode::Either).unwrap();
    assert_eq!(fork.block_count(), 2);
    set(&mut fork, &attribute(&[1; 65536]), SetMode::Either).unwrap();
    assert_eq!(fork.block_count(), 18);
    set(&mut fork, &attribute(&[]), SetMode::Replace).unwrap();
    assert!(fork.is_local());
    assert!(remove(&mut fork, &attribute(&[])).unwrap());
    // With parent pointers a list of none stays.
    assert_eq!(fork.local(), Some(&ShortformBuilder::with_capacity(0).finish()[..]));
    fork.geometry.features.incompat.remove(Incompat::PARENT);
    set(&mut fork, &attribute(&[1; 65536]), SetMode::Create).unwrap();
    assert!(remove(&mut fork, &attribute(&[])).unwrap());
    assert_eq!((fork.is_local(), fork.block_count()), (false, 0));
}

#[test]
fn bad_attributes_are_refused_by_name() {
    let mut fork = MemoryFork::new(12, 9);
    let mut refused = |name: &[u8], value: &[u8], word: &str| {
        let attribute = Attribute { namespace: Namespace::User, name, value };
        let message = set(&mut fork, &attribute, SetMode::Either).unwrap_err().to_string();
        assert!(message.contains(word) && message.contains("user."), "{message}");
    };
    refused(b"", b"", "0 bytes");
    refused(&[b'x'; 256], b"", "256 bytes");
    refused(b"a\0b", b"", "zero byte");
    refused(b"a", &[0; 65537], "65537 bytes");
}

#[test]
fn no_space_is_an_error() {
    let mut fork = MemoryFork::new(12, 9);
    fork.space = 3;
    let attribute = Attribute { namespace: Namespace::User, name: b"a", value: &[0; 65536] };
    assert!(matches!(
        set(&mut fork, &attribute, SetMode::Either),
        Err(Error::NoSpace { needed: 17, .. })
    ));
}

/// Two levels of nodes; more in a soak.
#[test]
fn very_many_parents() {
    let count: u32 = rounds(50_000, 200_000);
    let mut fork = MemoryFork::new(12, 9);
    let names: Vec<_> = (0..count).map(|number| format!("link-{number}")).collect();
    let pointer = |number: u32| ParentPointer {
        name: names[number as usize].as_bytes(),
        parent: InodeNumber(128 + u64::from(number % 977)),
        generation: number,
    };
    // A fixed walk through all numbers; no cost may grow with the content.
    let order =
        |step: u64| (0..count).map(move |i| (u64::from(i) * step % u64::from(count)) as u32);
    for number in order(123_457) {
        fork.reads.set(0);
        parent::add(&mut fork, &pointer(number)).unwrap();
        assert!(fork.reads.get() < 20, "{} reads", fork.reads.get());
    }
    assert_eq!(fork.check().len(), count as usize);
    assert!(matches!(parent::add(&mut fork, &pointer(7)), Err(Error::Exists(_))));
    let moved = ParentPointer { parent: InodeNumber(9000), ..pointer(7) };
    parent::replace(&mut fork, &pointer(7), &moved).unwrap();
    let mut seen = 0;
    parent::for_each_parent(&mut fork, &mut |found| {
        seen += 1;
        assert_eq!(found.parent == moved.parent, found.name == moved.name);
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, count);
    parent::replace(&mut fork, &moved, &pointer(7)).unwrap();
    for number in order(99_991) {
        fork.reads.set(0);
        parent::remove(&mut fork, &pointer(number)).unwrap();
        assert!(fork.reads.get() < 60, "{} reads", fork.reads.get());
        if number % 20_000 == 0 {
            fork.check();
        }
    }
    assert!(fork.check().is_empty() && fork.block_count() == 0);
    assert!(matches!(parent::remove(&mut fork, &pointer(7)), Err(Error::Fork { .. })));
}

#[test]
fn damage_is_an_error_that_names_the_block() {
    let mut fork = MemoryFork::new(12, 9);
    let value = vec![5; 9000];
    let attribute = Attribute { namespace: Namespace::User, name: b"big", value: &value };
    set(&mut fork, &attribute, SetMode::Either).unwrap();
    let block = fork.next_mapped(FileBlock(2)).unwrap().unwrap();
    fork.block_bytes(block.0, |bytes| bytes[7] ^= 1);
    let message = get(&mut fork, Namespace::User, b"big").unwrap_err().to_string();
    assert!(message.contains("file block 2") && message.contains("inode 131"), "{message}");
}
