//! Attribute forks written by others: the kernel's bytes, and damaged ones.

use super::memory_fork::MemoryFork;
use super::*;
use crate::format::samples::from_hex;
use crate::format::{AttrFlags, BufferKind, Namespace};
use crate::units::InodeNumber;
use proptest::prelude::*;
use undercroft_block::Sector;

/// A leaf that Linux 6.18 left after six additions, two removals and one more addition: with a
/// hole, three free regions and a remote value.
fn kernel_leaf() -> Vec<u8> {
    let mut bytes = from_hex(
        "00000000000000003bee0000014a15ea000000000000003e0000000100000002\
         1247d4bd747147aeab047c3a9f7697f20000000000000043000601cc01cc0100\
         0080014c024c005c01fc000c000000000000002703f009004d1a796302080100\
         5dbbf9f302a800006d39ba6e01f001006d3cb9f202bc01007c7bfd5e01cc05",
    );
    bytes.resize(127 + 334, 0);
    bytes.extend(from_hex("140a6361706162696c697479010000020020"));
    bytes.resize(bytes.len() + 18, 0);
    bytes.extend(from_hex("0105666966746835"));
    bytes.resize(bytes.len() + 16, 0);
    bytes.extend(from_hex("3c057468697264"));
    bytes.resize(bytes.len() + 60, b'3');
    bytes.resize(bytes.len() + 95, 0);
    bytes.extend(from_hex("01000003e80672656d6f74650000000000012c056669727374"));
    bytes.resize(bytes.len() + 300, b'1');
    bytes.extend(from_hex("000c0167000000000000004000000000"));
    bytes
}

/// One of the two blocks of its remote value.
fn kernel_value_block(head: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = from_hex(head);
    bytes.extend(from_hex("1247d4bd747147aeab047c3a9f7697f20000000000000043000000000000"));
    bytes.extend(if value.len() > 100 { [0x00, 0x3a] } else { [0x00, 0x3c] });
    bytes.extend([0xff; 8]);
    bytes.extend(value);
    bytes.resize(1024, 0);
    bytes
}

fn kernel_fork() -> MemoryFork {
    let mut fork = MemoryFork::new(10, 9);
    fork.number = InodeNumber(67);
    let value: Vec<u8> = (0..1000_u32).map(|at| (at % 250) as u8).collect();
    let first = kernel_value_block("5841524d00000000000003c8ad2896bb", &value[..968]);
    let second = kernel_value_block("5841524d000003c800000020ec0f15e8", &value[968..]);
    fork.put_block(0, BufferKind::AttrLeaf, kernel_leaf(), Sector(62));
    fork.put_block(1, BufferKind::AttrRemote, first, Sector(58));
    fork.put_block(2, BufferKind::AttrRemote, second, Sector(60));
    fork
}

#[test]
fn a_leaf_of_the_kernel_is_read_and_changed() {
    let mut fork = kernel_fork();
    for block in fork.mapped() {
        // The checksums are at the same place in both kinds.
        fork.block_bytes(block, |bytes| {
            let stored: [u8; 4] = bytes[12..16].try_into().unwrap();
            bytes[12..16].fill(0);
            assert_eq!(crc32c::crc32c(bytes).to_le_bytes(), stored);
        });
    }
    let mut model = fork.check();
    assert_eq!(model.len(), 6);
    let value = get(&mut fork, Namespace::User, b"remote").unwrap().unwrap();
    assert_eq!((value.len(), value[999]), (1000, 249));
    assert_eq!(get(&mut fork, Namespace::User, b"third").unwrap(), Some(vec![b'3'; 60]));
    assert_eq!(get(&mut fork, Namespace::User, b"second").unwrap(), None);
    // More than the free regions hold: the hole is won back first.
    let wanted = Attribute { namespace: Namespace::User, name: b"second", value: &[b'2'; 370] };
    set(&mut fork, &wanted, SetMode::Create).unwrap();
    model.insert((Namespace::User, b"second".to_vec(), Vec::new()), vec![b'2'; 370]);
    assert_eq!(fork.block_count(), 3);
    assert!(fork.check() == model);
    for ((namespace, name, identity), _) in model {
        let attribute = Attribute { namespace, name: &name, value: &identity };
        assert!(remove(&mut fork, &attribute).unwrap());
        fork.check();
    }
    assert_eq!(fork.block_count(), 0);
}

#[test]
fn incomplete_entries_are_not_seen() {
    let mut fork = kernel_fork();
    // The flags of "remote", third in the table.
    fork.block_bytes(0, |bytes| bytes[102] = AttrFlags::INCOMPLETE.bits());
    assert_eq!(get(&mut fork, Namespace::User, b"remote").unwrap(), None);
    let mut count = 0;
    for_each(&mut fork, &mut |attribute| {
        count += 1;
        assert_ne!(attribute.name, b"remote");
        Ok(())
    })
    .unwrap();
    assert_eq!(count, 5);
    let again = Attribute { namespace: Namespace::User, name: b"remote", value: b"new" };
    assert!(!remove(&mut fork, &again).unwrap());
    set(&mut fork, &again, SetMode::Create).unwrap();
    assert_eq!(get(&mut fork, Namespace::User, b"remote").unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn incomplete_entries_end_with_the_leaf() {
    let mut fork = MemoryFork::new(12, 9);
    let attribute = |name, value| Attribute { namespace: Namespace::User, name, value };
    set(&mut fork, &attribute(b"a", &[1; 200]), SetMode::Create).unwrap();
    set(&mut fork, &attribute(b"b", &[2; 200]), SetMode::Create).unwrap();
    assert_eq!((fork.is_local(), fork.block_count()), (false, 1));
    fork.block_bytes(0, |bytes| bytes[80 + 6] |= AttrFlags::INCOMPLETE.bits());
    set(&mut fork, &attribute(b"b", b"short"), SetMode::Replace).unwrap();
    assert!(fork.is_local());
    assert_eq!(fork.check().len(), 1);
}

#[test]
fn a_removal_that_was_cut_off_goes_on() {
    let mut fork = MemoryFork::new(12, 9);
    let names: Vec<_> = (0..40_u8).map(|number| [number + 1; 200]).collect();
    let pointer = |number: usize| Attribute {
        namespace: Namespace::Parent,
        name: &names[number],
        value: &[3; 12],
    };
    for number in 0..names.len() {
        set(&mut fork, &pointer(number), SetMode::Create).unwrap();
    }
    let gone = pointer(7);
    let hash = gone.hash(&fork.geometry).to_be_bytes();
    let mut leaves = 0;
    for block in fork.mapped() {
        fork.block_bytes(block, |bytes| {
            if bytes[8..10] != [0x3b, 0xee] {
                return;
            }
            leaves += 1;
            // Entries begin behind the header of 80 bytes: hash, place, flags.
            let mut entries = bytes[80..].chunks_exact_mut(8);
            if let Some(entry) = entries.find(|entry| entry[..4] == hash) {
                entry[6] |= AttrFlags::INCOMPLETE.bits();
            }
        });
    }
    assert!(leaves > 1);
    assert!(!remove(&mut fork, &gone).unwrap(), "it is not seen");
    finish_removal(&mut fork, &gone).unwrap();
    assert_eq!(fork.check().len(), names.len() - 1);
    // One that is not there was removed already.
    finish_removal(&mut fork, &gone).unwrap();
    finish_removal(&mut fork, &pointer(8)).unwrap();
    assert_eq!(fork.check().len(), names.len() - 2);
}

/// A tree of two levels with remote values.
fn large_fork() -> MemoryFork {
    let mut fork = MemoryFork::new(10, 9);
    for number in 0..60_u16 {
        let name = number.to_string().into_bytes();
        let value = vec![7; usize::from(number * 97 % 1500)];
        let attribute = Attribute { namespace: Namespace::User, name: &name, value: &value };
        set(&mut fork, &attribute, SetMode::Create).unwrap();
    }
    fork
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damage_never_panics(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..1024, any::<u8>()), 1..4),
        in_header in 0_usize..4,
        number in 0_u16..60,
    ) {
        let mut fork = large_fork();
        let mapped = fork.mapped();
        for (block, at, value) in &damage {
            // Headers and tables are where damage does most.
            let at = if in_header > 0 { at % 140 } else { *at };
            fork.block_bytes(*block.get(&mapped), |bytes| bytes[at] = *value);
        }
        let name = number.to_string().into_bytes();
        let attribute = Attribute { namespace: Namespace::User, name: &name, value: &[1; 700] };
        let _ = get(&mut fork, Namespace::User, &name);
        let _ = for_each(&mut fork, &mut |_| Ok(()));
        if set(&mut fork, &attribute, SetMode::Either).is_ok() {
            let _ = remove(&mut fork, &attribute);
        }
    }
}
