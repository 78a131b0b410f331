//! Runs random operations on files in every format, and the same on a kernel mount of a copy.
//!
//! `cargo run --release -p undercroft-xfs --example soak_ops -- OPERATIONS SEED [FORMAT]`: operations
//! for each format, or for one.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_testkit::xfs::operations;

/// Operations between two comparisons.
const SESSION: u32 = 1000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(count), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: soak_ops OPERATIONS SEED [FORMAT]");
        return ExitCode::FAILURE;
    };
    let sessions = u32::try_from(count).unwrap_or(u32::MAX).div_ceil(SESSION);
    let wanted = |name: &str| words.get(2).is_none_or(|only| only == name);
    for (seed, format) in (seed..).zip(operations::formats()) {
        if !wanted(format.name) {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("volume.img");
        format.make(&image, &[]).unwrap();
        let begun = Instant::now();
        operations::against_kernel(&image, seed, sessions, SESSION);
        let (name, seconds) = (format.name, begun.elapsed().as_secs_f64());
        let operations = sessions * SESSION;
        println!("{name}: {operations} operations in {seconds:.1} s, seed {seed}; the same");
    }
    ExitCode::SUCCESS
}
