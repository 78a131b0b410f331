//! Eight threads use volumes as a server does, and the power fails at random points: what answered
//! tickets cover is looked for behind our replay of each, and behind the kernel's of some.
//!
//! `cargo run --release --features checked-locks -p undercroft-xfs --example soak_serve_crash -- CUTS
//! KERNEL SEED`: so many cuts that we replay, and so many that the kernel does. Those need root.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

#[path = "../tests/serve_crash/cuts.rs"]
mod cuts;
#[path = "../tests/serve/device.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod device;
#[path = "../tests/serve_crash/files.rs"]
mod files;
#[path = "../tests/serve_crash/history.rs"]
mod history;
#[path = "../tests/serve_crash/model.rs"]
mod model;
#[path = "../tests/serve_crash/names.rs"]
mod names;
#[path = "../tests/serve_crash/notes.rs"]
mod notes;
#[path = "../tests/serve_crash/trees.rs"]
mod trees;
#[path = "../tests/serve_crash/worker.rs"]
mod worker;

use cuts::{Count, Judged, judge};
use history::Plan;
use std::process::ExitCode;
use std::time::Instant;

/// Cuts of one history that we replay, and that the kernel does.
const MOST: Count = Count { ours: 200, kernels: 20 };

fn main() -> ExitCode {
    let numbers: Vec<Option<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let [Some(ours), Some(kernels), Some(first)] = numbers[..] else {
        eprintln!("usage: soak_serve_crash CUTS KERNEL SEED");
        return ExitCode::FAILURE;
    };
    let (mut left, start) =
        (Count { ours: ours as usize, kernels: kernels as usize }, Instant::now());
    let mut sum = Judged::default();
    for seed in first.. {
        if (left.ours, left.kernels) == (0, 0) {
            break;
        }
        let count =
            Count { ours: left.ours.min(MOST.ours), kernels: left.kernels.min(MOST.kernels) };
        let judged = judge(&Plan::of(seed, 300), count);
        left.ours -= count.ours;
        left.kernels -= count.kernels;
        sum.add(&judged);
        println!("seed {seed}: {sum}, {:.0} s", start.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}
