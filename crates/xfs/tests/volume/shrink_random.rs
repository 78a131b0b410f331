//! Random volumes made smaller; `cargo xtask soak shrink` has more of them.

use undercroft_judges::{kernel, rounds};
use undercroft_testkit::xfs::volume::random::{Round, round};

#[test]
fn random_volumes_shrink() {
    if !kernel::available_or_report() {
        return;
    }
    let mut shrunk = 0;
    let count = rounds(4, 20);
    for seed in 0..count {
        let directory = tempfile::tempdir().unwrap();
        let (format, outcome) = round(directory.path(), seed);
        println!("{seed}: {format}: {outcome}");
        shrunk += u64::from(matches!(outcome, Round::Shrunk(_)));
    }
    assert!(shrunk * 2 > count, "only {shrunk} of {count} shrank");
}
