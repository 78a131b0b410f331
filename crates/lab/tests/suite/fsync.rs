//! The experiment on fsync in its smoke size, on a volume of ours and in a directory.

use std::path::Path;

use undercroft_lab::fsync::{self, FsyncOptions, FsyncOutcome, Mode, Workload};
use undercroft_lab::{Destination, Outcome, RunOptions, Size};

const SMOKE: RunOptions =
    RunOptions { size: Size::Smoke, repeat: Some(2), duration: None, seed: 1 };

fn run(options: &FsyncOptions) -> Vec<FsyncOutcome> {
    let mut outcomes = Vec::new();
    fsync::run(options, &SMOKE, &mut |outcome| match outcome {
        Outcome::Fsync(of) => outcomes.push(of),
        other => panic!("{other:?} of another experiment"),
    })
    .unwrap();
    outcomes
}

#[test]
fn every_mode_writes_and_syncs_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let places = [
        Destination::Image(directory.path().join("image"), 320 << 20),
        Destination::Directory(directory.path().to_owned()),
    ];
    for place in places {
        let outcomes = run(&FsyncOptions {
            places: vec![place.clone()],
            modes: Mode::ALL.map(|(_, mode)| mode).to_vec(),
            threads: vec![1, 2],
            directories: 2,
            warm_up: 1,
            workload: Workload::Equal { files: 1000, size: 20_000 },
        });
        assert_eq!(outcomes.len(), 16);
        if matches!(place, Destination::Directory(_)) {
            // Two iterations that count, and one ahead of them that does not.
            let written: u64 = outcomes.iter().map(|one| 3 * one.files).sum();
            assert_eq!(files_below(directory.path()), written);
        }
        for one in outcomes {
            let threads = one.threads as u64;
            let each = match one.mode {
                Mode::NoSync => 0,
                Mode::SyncFsync => 1,
                _ => 20,
            };
            assert_eq!((one.files, one.fsyncs), (20 * threads, 2 * each * threads), "{one:?}");
            assert_eq!((one.size, one.iterations.len()), (20_000, 2));
            assert_eq!(one.iterations[1].count, 40 * threads);
            assert_eq!(one.latency.count, one.fsyncs);
            if matches!(place, Destination::Image(..)) && one.fsyncs > 0 {
                assert!(one.log_writes_per_fsync.unwrap() <= 2.0, "{one:?}");
                assert_eq!(one.target, "undercroft");
            }
        }
    }
}

/// Files in the directories below `path`.
fn files_below(path: &Path) -> u64 {
    let directories = path.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let inside = directories.filter(|path| path.is_dir());
    inside.map(|directory| directory.read_dir().unwrap().count() as u64).sum()
}

#[test]
fn the_filebench_profile_writes_its_total() {
    let directory = tempfile::tempdir().unwrap();
    let outcomes = run(&FsyncOptions {
        places: vec![Destination::Image(directory.path().join("image"), 320 << 20)],
        modes: vec![Mode::FsyncBeforeClose],
        threads: vec![8],
        directories: 1,
        warm_up: 0,
        workload: Workload::Filebench { total: 1 << 40 },
    });
    let [one] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(one.fsyncs, one.files * 2);
    // Twice 8 MiB, each thread its share.
    assert!(one.size * one.files * 2 > 15 << 20, "{one:?}");
}
