//! Random volumes made smaller; `cargo xtask soak shrink` has more of them.

use crate::random::{Round, round};
use undercroft_judges::{kernel, rounds};

#[test]
fn random_volumes_shrink() {
    if !kernel::available_or_report("xfs::volume::shrink_random::random_volumes_shrink") {
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
