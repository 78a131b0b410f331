//! The experiment on empty files in its smoke size, on a volume of ours and in a directory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_lab::meta::{self, MetaOptions};
use undercroft_lab::{Destination, Outcome, RunOptions, Size};
use undercroft_xfs::Volume;
use undercroft_xfs::check::{CheckOptions, check};

const SMOKE: RunOptions =
    RunOptions { size: Size::Smoke, repeat: Some(2), duration: None, seed: 1 };

/// Inodes in use of the volume in a file, which must be sound.
fn inodes_in_use(image: &Path) -> u64 {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let mut findings = Vec::new();
    check(Arc::clone(&device), &CheckOptions::default(), &mut |found| findings.push(found))
        .unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    let volume = Volume::open(device).unwrap();
    volume.superblock().inodes - volume.superblock().free_inodes
}

#[test]
fn places_take_turns_and_nothing_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let (image, below) = (scratch.path().join("image"), scratch.path().join("below"));
    fs::create_dir(&below).unwrap();
    let options = MetaOptions {
        places: vec![
            Destination::Directory(below.clone()),
            Destination::Image(image.clone(), 320 << 20),
        ],
        threads: vec![1, 4],
        directories: vec![1, 30],
        files: 100_000,
    };
    let mut outcomes = Vec::new();
    meta::run(&options, &SMOKE, &mut |outcome| match outcome {
        Outcome::Meta(of) => outcomes.push(of),
        other => panic!("{other:?} of another experiment"),
    })
    .unwrap();
    assert_eq!(outcomes.len(), 8);
    for pair in outcomes.chunks(2) {
        assert_eq!(pair[1].target, "undercroft");
        assert_eq!((pair[0].directories, pair[0].threads), (pair[1].directories, pair[1].threads));
        for one in pair {
            assert_eq!((one.files, one.rounds, one.operations.len()), (200, 2, 3));
            for speed in &one.operations {
                assert!(speed.per_second.iter().all(|rate| *rate > 0.0), "{speed:?}");
                let rates = speed.per_second.iter().zip(&speed.durable_per_second);
                assert!(rates.clone().all(|(calls, durable)| calls > durable), "{speed:?}");
                assert_eq!(rates.count(), 2);
            }
        }
    }
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
    // The root, and the two of the realtime section.
    assert_eq!(inodes_in_use(&image), 3);
}
