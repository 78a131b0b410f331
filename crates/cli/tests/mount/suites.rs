//! Suites of others on a mount of ours, and kills of its server: a few rounds of what `cargo xtask soak
//! mount` has many of. Each ends with all judges looking at the volume.

use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_judges::load::work_if_asked;
use undercroft_judges::suite::kill::Kills;
use undercroft_judges::suite::pjdfstest::{self, Outcome};
use undercroft_judges::suite::{direct, ends, fsx};
use undercroft_judges::{Scratch, ServedMount, Xfsprogs, kernel, rounds};

const SIZE: u64 = 1 << 30;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_undercroft"))
}

/// A fresh volume, mounted; its directory comes last, so that it goes last.
fn mounted() -> (ServedMount, PathBuf, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("image");
    Xfsprogs::newest().unwrap().mkfs(&image, SIZE, &[]).unwrap();
    (ServedMount::new(program(), &image, &[]).unwrap(), image, scratch)
}

#[test]
fn pjdfstest_finds_what_it_finds_on_the_kernels_mount() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let kernels = Scratch::new(SIZE).unwrap();
    let (mount, image, _scratch) = mounted();
    let ours = pjdfstest::run(&mount.path(), kernels.path()).unwrap();
    let theirs = pjdfstest::run(kernels.path(), &mount.path()).unwrap();
    let unknown = pjdfstest::unknown(&ours.differences(&theirs));
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(ours.count(Outcome::Passed) > 350, "{ours:?}");
    ends::accept(program(), &image, mount).unwrap();
}

#[test]
fn one_file_holds_what_was_written() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let (mount, image, scratch) = mounted();
    fsx::run(&mount.path(), rounds(5000, 100_000), 1, scratch.path()).unwrap();
    direct::run(&mount.path(), rounds(3000, 100_000), 1).unwrap();
    assert_eq!(ends::accept(program(), &image, mount).unwrap(), 3);
}

/// This program as a process of the load.
fn worker() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "suites::process_of_the_load", "--ignored"]);
    command
}

#[test]
#[ignore = "a process of the load, started by the test below"]
fn process_of_the_load() {
    assert!(work_if_asked().unwrap());
}

#[test]
fn a_killed_server_leaves_what_was_synced() {
    if !kernel::fuse_available_or_report() {
        return;
    }
    let (mut operations, mut syncs) = (0, 0);
    let kills = Kills::new(program(), &worker, 1).unwrap();
    let count = rounds(3, 30);
    kills
        .run(count, |_, work| {
            operations += work.operations;
            syncs += work.syncs;
        })
        .unwrap();
    assert!(operations > syncs && syncs > count, "{operations} operations, {syncs} syncs");
}
