//! Eight threads use volumes as a server does, for a while: every byte is known, and every device of
//! the kinds there are takes its turn: prompt, late and out of order, full, failing.
//!
//! `cargo run --release --features checked-locks -p undercroft-xfs --example soak_serve -- MINUTES
//! SEED`. Needs root: the judges look at the volume of each round.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use undercroft_block::FileDevice;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs};
use undercroft_testkit::xfs::serve::device::{Manner, volume, with_manner};
use undercroft_testkit::xfs::serve::history::{Outcome, Plan, run};

/// A call that takes longer is as good as hanging.
const LONGEST: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let numbers: Vec<Option<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let [Some(minutes), Some(seed)] = numbers[..] else {
        eprintln!("usage: soak_serve MINUTES SEED");
        return ExitCode::FAILURE;
    };
    let scratch = tempfile::tempdir().unwrap();
    let image = scratch.path().join("volume.img");
    let (start, mut operations) = (Instant::now(), 0);
    for round in 0.. {
        if start.elapsed().as_secs() >= minutes * 60 {
            break;
        }
        let (what, outcome) = one_round(&image, round, seed + round);
        operations += outcome.operations;
        assert!(outcome.longest < LONGEST, "{what}: a call took {:?}", outcome.longest);
        println!(
            "round {round} ({what}): {} operations, {} without space, longest call {:?}, memory {} MiB, \
             {operations} in {:.0} s",
            outcome.operations,
            outcome.refused,
            outcome.longest,
            memory(),
            start.elapsed().as_secs_f64()
        );
    }
    ExitCode::SUCCESS
}

fn one_round(image: &Path, round: u64, seed: u64) -> (&'static str, Outcome) {
    let plan =
        Plan { threads: 8, slots: 6, steps: 4000, seed, dirty_bytes: 4 << 20, compares: true };
    let (what, manner, bytes, plan) = match round % 4 {
        0 => ("prompt", Manner::Prompt, 512 << 20, plan),
        1 => ("late", Manner::Late, 512 << 20, Plan { steps: 1000, ..plan }),
        2 => ("full", Manner::Prompt, 24 << 20, Plan { slots: 48, ..plan }),
        _ => ("failing", Manner::Failing(3000), 512 << 20, Plan { compares: false, ..plan }),
    };
    let file = std::fs::File::create(image).unwrap();
    file.set_len(bytes).unwrap();
    drop(file);
    let device = volume(Arc::new(FileDevice::open(image, false).unwrap()), seed);
    let device = with_manner(device, manner, seed);
    let outcome = run(&device, &plan).unwrap();
    drop(device);
    if plan.compares {
        assert!(outcome.errors.is_empty(), "{what}, seed {seed}: {outcome:?}");
        Xfsprogs::newest().unwrap().repair_check(image).unwrap();
        LoopMount::new(image, Access::ReadOnly, &[]).unwrap().unmount().unwrap();
    }
    (what, outcome)
}

/// Memory of this process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}
