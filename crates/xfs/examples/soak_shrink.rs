//! Makes random volumes smaller, and has the judges look at each.
//!
//! `cargo run --release -p undercroft-xfs --example soak_shrink -- COUNT SEED`

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_testkit::xfs::volume::random::{Round, round};

fn main() -> ExitCode {
    let numbers: Vec<Option<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let [Some(count), Some(first)] = numbers[..] else {
        eprintln!("usage: soak_shrink COUNT SEED");
        return ExitCode::FAILURE;
    };
    let (mut shrunk, mut refused, begun) = (0, 0, Instant::now());
    for seed in first..first + count {
        let directory = tempfile::tempdir().unwrap();
        let (format, outcome) = round(directory.path(), seed);
        println!("{seed}: {format}: {outcome}");
        match outcome {
            Round::Shrunk(_) => shrunk += 1,
            Round::Refused(_) => refused += 1,
        }
    }
    let seconds = begun.elapsed().as_secs();
    println!("{count} volumes in {seconds} s: {shrunk} shrunk and sound, {refused} refused");
    ExitCode::SUCCESS
}
