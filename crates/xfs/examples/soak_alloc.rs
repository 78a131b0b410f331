//! Runs long random histories of the allocator, one for each variant, and has the judges look at
//! the volume each leaves.
//!
//! `cargo run --release -p undercroft-xfs --example soak_alloc -- OPERATIONS SEED [VARIANT]`

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_testkit::xfs::allocations::History;
use undercroft_testkit::xfs::judged;
use undercroft_xfs::internals::experiments::Variant;
use undercroft_xfs::mkfs::MkfsOptions;
use uuid::Uuid;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<Option<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let ([Some(operations), Some(seed)] | [Some(operations), Some(seed), None]) = numbers[..]
    else {
        eprintln!("usage: soak_alloc OPERATIONS SEED [VARIANT]");
        return ExitCode::FAILURE;
    };
    let only = words.get(2).map(|name| Variant::from_name(name));
    if only == Some(None) {
        eprintln!("variants: {}", Variant::ALL.map(Variant::name).join(", "));
        return ExitCode::FAILURE;
    }
    for variant in Variant::ALL {
        if only.flatten().is_none_or(|only| only == variant) {
            soak(variant, operations, seed);
        }
    }
    ExitCode::SUCCESS
}

fn soak(variant: Variant, operations: u64, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("soak.img");
    let options =
        MkfsOptions { ag_count: Some(4), ..MkfsOptions::new(4 << 30, Uuid::from_u128(0x50a)) };
    let mut history =
        History::start(&image, &options, |volume| volume.set_near_search(variant.search()), seed);
    let begun = Instant::now();
    history.wander(operations, 64);
    let seconds = begun.elapsed().as_secs_f64();
    let (refused, most) = (history.refused, history.held_extents());
    history.take_all();
    history.compare();
    history.free_until(history.held_extents() / 2);
    history.compare();
    history.finish();
    judged::sound(&image, &format!("{variant}, seed {seed}"));
    println!(
        "{variant}: {operations} operations in {seconds:.1} s, {refused} refused, \
         {most} extents held at the end; sound"
    );
}
