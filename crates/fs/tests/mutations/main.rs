//! Verbs on volumes with wrong metadata whose checksums are right end, without a panic.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use undercroft_judges::damage::volume;
use undercroft_judges::kernel;
use undercroft_testkit::fs::stand::{Outcome, Stand};

const ROUNDS: u64 = 600;

#[test]
fn verbs_on_mutated_volumes_end() {
    if !kernel::available_or_report() {
        return;
    }
    let (_directory, image) = volume().unwrap();
    let mut stand = Stand::new(std::fs::read(image).unwrap(), 0x5eed).unwrap();
    let mut outcome = Outcome::default();
    while outcome.rounds < ROUNDS {
        stand.round(&mut outcome).unwrap();
    }
    println!("{outcome:?}");
    assert!(outcome.overwritten.is_empty(), "{outcome:#?}");
    // Damage was met, and not everywhere.
    assert!(outcome.refused > 20 && outcome.unopened + outcome.refused < ROUNDS / 2);
}
