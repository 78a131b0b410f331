//! Eight threads use one volume as a server does, and the power fails: what an answered ticket covers
//! is there. `cargo xtask soak serve-crash` goes on for as long as one likes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod cuts;
#[path = "../serve/device.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod device;
mod files;
mod history;
mod model;
mod model_tests;
mod names;
mod notes;
mod trees;
mod worker;

use cuts::{Count, Judged, judge};
use history::Plan;
use undercroft_judges::kernel;

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
    if !kernel::available_or_report(
        "serve_crash::the_kernel_finds_what_eight_threads_were_told_is_durable",
    ) {
        return;
    }
    let mut sum = Judged::default();
    for seed in 5..7 {
        sum.add(&judge(&Plan::of(seed, 150), Count { ours: 0, kernels: 5 }));
    }
    assert_is_telling(&sum);
}
