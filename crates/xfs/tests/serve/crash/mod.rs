//! Eight threads use one volume as a server does, and the power fails: what an answered ticket covers
//! is there. `cargo xtask soak serve-crash` goes on for as long as one likes.

mod model;

use undercroft_judges::kernel;
use undercroft_testkit::xfs::serve_crash::cuts::{Count, Judged, judge};
use undercroft_testkit::xfs::serve_crash::history::Plan;

/// A history says something only if enough was covered, and enough under way.
fn assert_is_telling(judged: &Judged) {
    let Judged { answered, unchanged, changed, .. } = *judged;
    assert!(answered > 200 && unchanged > 50 && changed > 50, "{judged}");
    println!("{judged}");
}

#[test]
fn we_find_what_eight_threads_were_told_is_durable() {
    let mut sum = Judged::default();
    for seed in 0..5 {
        sum.add(&judge(&Plan::of(seed, 150), Count { ours: 40, kernels: 0 }));
    }
    assert_is_telling(&sum);
}

#[test]
fn the_kernel_finds_what_eight_threads_were_told_is_durable() {
    if !kernel::available_or_report() {
        return;
    }
    let mut sum = Judged::default();
    for seed in 5..7 {
        sum.add(&judge(&Plan::of(seed, 150), Count { ours: 0, kernels: 5 }));
    }
    assert_is_telling(&sum);
}
