//! No bytes of a directory make its code panic or loop.

use super::*;

/// A directory of about this many names.
fn sample(shape: Shape, names: usize, seed: u64) -> Twin {
    let mut twin = Twin::new(shape, 150, seed);
    while twin.model.len() < names {
        twin.step(names, 30, 9);
    }
    twin
}

/// Every operation once or more; errors are fine.
fn exercise(twin: &mut Twin) {
    let names: Vec<_> = twin.model.keys().take(40).cloned().collect();
    let entry = twin.entry();
    let fork = &mut twin.fork;
    let mut last = Position::START;
    let _ = iterate(fork, Position::START, |entry| {
        // So every listing ends, also one that goes on at positions it was given.
        assert!(entry.next > last, "{:?} after {last:?}", entry.next);
        last = entry.next;
        true
    });
    let _ = is_empty(fork);
    let _ = parent(fork);
    for (number, name) in names.iter().enumerate() {
        let _ = lookup(fork, name);
        let _ = replace(fork, name, entry);
        let _ = add(fork, format!("new {number}").as_bytes(), entry, &mut twin.space);
        let _ = remove(fork, name, &mut twin.space);
    }
    let _ = set_parent(fork, PARENT);
}

/// Changes some bytes; sometimes words that count or point, sometimes anything.
fn mutate(random: &mut Random, bytes: &mut [u8], header: usize) {
    for _ in 0..1 + random.below(4) {
        let at = match random.below(4) {
            0 => random.below(header.min(bytes.len())),
            1 => bytes.len() - 1 - random.below(16),
            _ => random.below(bytes.len()),
        };
        bytes[at] = match random.below(4) {
            0 => 0,
            1 => 0xff,
            2 => bytes[at] ^ (1 << random.below(8)),
            _ => random.next() as u8,
        };
    }
}

fn damaged_directories(shape: Shape, names: usize, rounds: u64) {
    for round in 0..rounds {
        let mut twin = sample(shape, names, round);
        twin.fork.reload();
        let blocks: Vec<u64> = twin.fork.blocks.keys().copied().collect();
        let mut random = Random(round);
        for _ in 0..1 + random.below(3) {
            let block = blocks[random.below(blocks.len())];
            twin.fork.damage(block, |bytes| mutate(&mut random, bytes, 80));
        }
        exercise(&mut twin);
    }
}

#[test]
fn damaged_blocks_are_errors() {
    damaged_directories(Shape::v5(10, 0), 15, 200);
    damaged_directories(Shape::v5(10, 0), 60, 200);
    damaged_directories(Shape::v5(10, 0), 300, 200);
    damaged_directories(Shape::v4(9, 0, false), 900, 100);
    damaged_directories(Shape::v5(16, 0), 100, 20);
}

#[test]
fn blocks_in_each_others_place_are_errors() {
    for round in 0..300 {
        let mut twin = sample(Shape::v4(9, 0, false), 900, round % 3);
        twin.fork.reload();
        let blocks: Vec<u64> = twin.fork.blocks.keys().copied().collect();
        let mut random = Random(round);
        let (a, b) = (blocks[random.below(blocks.len())], blocks[random.below(blocks.len())]);
        let bytes = twin.fork.blocks[&a].0.read().to_vec();
        twin.fork.damage(b, |target| target.copy_from_slice(&bytes));
        exercise(&mut twin);
    }
}

#[test]
fn damaged_short_forms_are_errors() {
    for round in 0..2000 {
        let mut twin = sample(Shape::v5(12, 0), 4, round % 10);
        let mut random = Random(round);
        let content = twin.fork.local.as_mut().unwrap();
        match random.below(4) {
            0 => content.truncate(random.below(content.len())),
            _ => mutate(&mut random, content, 10),
        }
        exercise(&mut twin);
    }
}

proptest! {
    /// A block that a verifier accepts can be walked by the code behind it. A verifier returns for
    /// any bytes.
    #[test]
    fn verifiers_take_any_bytes(seed in any::<u64>(), fill in 0_u8..4) {
        let mut random = Random(seed);
        for shape in [Shape::v5(10, 0), Shape::v4(9, 0, true)] {
            let geometry = shape.geometry();
            let mut bytes = vec![0_u8; geometry.dir_block_size()];
            for byte in &mut bytes {
                *byte = match fill {
                    0 => random.next() as u8,
                    1 if random.below(4) > 0 => 0,
                    2 if random.below(4) > 0 => 0xff,
                    _ => random.next() as u8 & 0x1f,
                };
            }
            for kind in [
                BufferKind::DirBlock,
                BufferKind::DirData,
                BufferKind::DirFree,
                BufferKind::DirLeaf1,
                BufferKind::DirLeafN,
                BufferKind::DaNode,
            ] {
                let _ = testing::verify(kind, &bytes, &geometry);
            }
        }
    }
}

#[test]
fn a_loop_of_leaves_is_noticed() {
    // Names of one hash in several leaves, the last of which claims the first as its successor.
    let mut twin = sample(Shape::v4(9, 0, false), 900, 5);
    let root = twin.fork.geometry().dir_leaf_block();
    let layout = DirLayout::new(twin.fork.geometry()).da();
    twin.fork.reload();
    let children: Vec<u64> = {
        let root = twin.fork.read(root, BufferKind::DaAny).unwrap().unwrap();
        let bytes = root.read();
        assert_eq!(layout.level(&bytes), 1);
        (0..layout.count(&bytes)).map(|index| layout.child(&bytes, index).0).collect()
    };
    let [a, b] = [children[0], children[1]];
    let hash = layout.hash(&twin.fork.blocks[&a].0.read(), 0);
    for (block, other) in [(a, b), (b, a)] {
        twin.fork.damage(block, |bytes| {
            bytes[..4].copy_from_slice(&(other as u32).to_be_bytes());
            bytes[4..8].copy_from_slice(&(other as u32).to_be_bytes());
            for index in 0..layout.count(bytes) {
                let at = layout.pair_offset(index);
                bytes[at..at + 4].copy_from_slice(&hash.to_be_bytes());
            }
        });
    }
    twin.fork.damage(root.0, |bytes| {
        for index in 0..layout.count(bytes) {
            let at = layout.pair_offset(index);
            bytes[at..at + 4].copy_from_slice(&hash.to_be_bytes());
            let child = if index % 2 == 0 { a } else { b };
            bytes[at + 4..at + 8].copy_from_slice(&(child as u32).to_be_bytes());
        }
    });
    let tree = form::hash_tree(&twin.fork, DirLayout::new(twin.fork.geometry()));
    let mut path = tree.descend(&mut twin.fork, hash).unwrap();
    let mut steps = 0;
    let end = loop {
        match tree.next_leaf(&mut twin.fork, &mut path) {
            Ok(true) => steps += 1,
            end => break end,
        }
    };
    assert!(end.is_err() && steps < 8, "{steps} steps, then {end:?}");
}
