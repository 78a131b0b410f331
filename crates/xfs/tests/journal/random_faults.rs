//! Writes and flushes that fail at random: callers are told, the volume is read-only and says why,
//! and durable changes are on the device.

use std::sync::Arc;
use undercroft_block::Operation;
use undercroft_block::testing::{Fault, FaultyDevice};
use undercroft_judges::random::Random;
use undercroft_judges::{Xfsprogs, rounds};
use undercroft_testkit::disk;
use undercroft_testkit::xfs::journal::crash::make;
use undercroft_testkit::xfs::journal::tree::{Tree, tree};
use undercroft_testkit::xfs::journal::work::create_sized;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::ops::SetMode;
use undercroft_xfs::ops::{self, Name, RenameMode};
use undercroft_xfs::recovery::recover;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, OpenFile, Volume};
use uuid::Uuid;

const NOW: Timestamp = Timestamp { seconds: 9, nanoseconds: 0 };

/// A random operation on one of `names`, or one that adds a name.
fn step(
    volume: &Arc<Volume>,
    random: &mut Random,
    names: &mut Vec<(String, InodeNumber)>,
    number: u64,
) -> Result<(), Error> {
    let root = volume.geometry().root_inode;
    let at = random.below(names.len().max(1) as u64) as usize;
    match random.below(8) {
        0 | 1 if !names.is_empty() => {
            let (name, _) = names.swap_remove(at);
            ops::unlink(volume, root, name.as_bytes(), NOW).map(drop)
        }
        2 if !names.is_empty() => {
            let new = format!("renamed-{number}");
            let old = std::mem::replace(&mut names[at].0, new.clone());
            let from = Name { parent: root, name: old.as_bytes() };
            let to = Name { parent: root, name: new.as_bytes() };
            ops::rename(volume, from, to, RenameMode::NoReplace, NOW)
        }
        3 if !names.is_empty() => {
            let value = vec![number as u8; random.below(5000) as usize];
            let attribute = (&b"user.name"[..], &value[..]);
            ops::set_xattr(volume, names[at].1, attribute, SetMode::Either, NOW)
        }
        4 => {
            let name = format!("directory-{number}");
            create_sized(volume, root, &name, FileType::Directory, &[], 0).map(drop)
        }
        // Data of a file that has none yet.
        5 if !names.is_empty() && volume.inode(names[at].1)?.read().core.size == 0 => {
            let bytes = Arc::new(vec![number as u8; 20_000]);
            OpenFile::open(volume, names[at].1)?.write_direct(0, &bytes, 0..20_000, NOW)
        }
        _ => {
            let name = format!("{}-{number}", "file".repeat(random.below(40) as usize));
            let file = create_sized(volume, root, &name, FileType::Regular, &[], 0)?;
            names.push((name, file));
            Ok(())
        }
    }
}

/// What a run ended with: the trees behind its operations, how many of them were durable for sure,
/// and what the first caller was told.
struct Ended {
    trees: Vec<Tree>,
    durable: usize,
    error: Error,
}

/// Works until something fails.
fn run(volume: &Arc<Volume>, seed: u64) -> Option<Ended> {
    let mut random = Random::new(seed);
    let (mut trees, mut durable) = (vec![tree(volume).unwrap()], 0);
    let mut names = Vec::new();
    for number in 0..400 {
        let done = step(volume, &mut random, &mut names, number).and_then(|()| {
            trees.push(tree(volume).unwrap());
            if random.one_in(4) {
                volume.sync()?;
                durable = trees.len() - 1;
            }
            Ok(())
        });
        if let Err(error) = done {
            return Some(Ended { trees, durable, error });
        }
    }
    None
}

#[test]
fn whatever_fails_at_random_is_told_and_what_was_durable_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    let mut failed = [0; 2];
    for seed in 0..rounds(120, 240) {
        let operation = if seed % 3 == 0 { Operation::Flush } else { Operation::Write };
        let fault = Fault::new().on(operation).random(seed, [8, 40, 150][seed as usize / 3 % 3]);
        let fault = if seed % 3 == 2 { fault.torn(seed) } else { fault };
        let device = make(&MkfsOptions::new(64 << 20, Uuid::from_u128(1)));
        let faulty = Arc::new(FaultyDevice::new(Arc::clone(&device), [fault]));
        let volume = Volume::open_live(Arc::clone(&faulty) as _, &LiveOptions::default());
        let volume = Arc::new(volume.unwrap_or_else(|error| panic!("{seed}: {error}")));
        let what = format!("seed {seed}, {operation}");
        let Some(Ended { trees, durable, error }) = run(&volume, seed) else {
            assert!(faulty.injected() == 0, "{what}: nobody was told");
            continue;
        };
        assert!(faulty.injected() > 0, "{what}: {error}");
        failed[usize::from(operation == Operation::Flush)] += 1;
        assert!(matches!(error, Error::Device(_) | Error::Poisoned(_)), "{what}: {error}");
        let Err(Error::Poisoned(reason)) = volume.begin().map(drop) else {
            panic!("{what}: the volume can be changed")
        };
        assert!(volume.sync().is_err(), "{what}: it is called durable");
        assert!(reason.contains(&operation.to_string()), "{what}: {reason}");
        assert!(volume.close().is_err(), "{what}: it was unmounted");
        drop(volume);
        recover(&device, &mut |_| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = tree(&Volume::open(Arc::clone(&device)).unwrap()).unwrap();
        let place = trees[durable..].iter().position(|tree| *tree == found);
        assert!(place.is_some(), "{what}: no state since the last that was durable");
        let report = check(Arc::clone(&device), &CheckOptions::default(), &mut |finding| {
            panic!("{what}: {finding}");
        });
        assert!(report.unwrap().is_clean(), "{what}");
        if seed % 16 == 0 {
            disk::save(device.as_ref(), &image);
            Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
        }
    }
    assert!(failed.iter().all(|count| *count >= 5), "writes, flushes that failed: {failed:?}");
}
