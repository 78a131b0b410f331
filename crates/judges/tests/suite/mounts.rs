//! The suites for mounts, on the kernel's own XFS, which passes them.

use undercroft_judges::suite::pjdfstest::{self, Outcome};
use undercroft_judges::suite::{direct, fsx};
use undercroft_judges::tree::Listing;
use undercroft_judges::{Error, Scratch, kernel};

const SIZE: u64 = 512 << 20;

#[test]
fn pjdfstest_finds_two_kernel_mounts_the_same() {
    if !kernel::available_or_report() {
        return;
    }
    let (first, second) = (Scratch::new(SIZE).unwrap(), Scratch::new(SIZE).unwrap());
    let one = pjdfstest::run(first.path(), second.path()).unwrap();
    let other = pjdfstest::run(second.path(), first.path()).unwrap();
    assert!(one.count(Outcome::Passed) > 350 && one.count(Outcome::Failed) == 0, "{one:?}");
    assert!(one.differences(&other).is_empty(), "{:?}", one.differences(&other));
}

#[test]
fn a_kernel_mount_passes_the_exercisers() {
    if !kernel::available_or_report() {
        return;
    }
    let volume = Scratch::new(SIZE).unwrap();
    let artifacts = tempfile::tempdir().unwrap();
    fsx::run(volume.path(), 2000, 1, artifacts.path()).unwrap();
    direct::run(volume.path(), 2000, 1).unwrap();
    let listed = Listing::of(volume.path()).unwrap();
    let again = Listing::of(volume.path()).unwrap();
    assert_eq!((listed.len(), listed.differences(&again)), (3, Vec::new()));
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let missing = scratch.path().join("missing");
    assert!(matches!(direct::run(&missing, 1, 1), Err(Error::Io { .. })));
    assert!(fsx::run(&missing, 1, 1, scratch.path()).is_err());
}
