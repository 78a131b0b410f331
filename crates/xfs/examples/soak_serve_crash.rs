//! Eight threads use volumes as a server does, and the power fails at random points: what answered
//! tickets cover is looked for behind our replay of each, and behind the kernel's of some.
//!
//! `cargo run --release --features checked-locks -p undercroft-xfs --example soak_serve_crash -- CUTS
//! KERNEL SEED`: so many cuts that we replay, and so many that the kernel does. Those need root.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_testkit::xfs::serve_crash::cuts::{Count, Judged, judge};
use undercroft_testkit::xfs::serve_crash::history::Plan;

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
