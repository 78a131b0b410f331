//! Random operations on live volumes, crashes at random points of them, and a replay of each, until
//! stopped or until a number of crashes was tried.
//!
//! `cargo run --release -p undercroft-xfs --example soak_crash -- CRASHES SEED`; 0 crashes: no end.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::time::Instant;
use undercroft_block::testing::recorder::Unflushed;
use undercroft_testkit::xfs::journal::crash::{History, cuts, formats, judge, make};
use undercroft_xfs::volume::LiveOptions;

fn main() -> ExitCode {
    let numbers: Vec<Option<u64>> =
        std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let [Some(wanted), Some(mut seed)] = numbers[..] else {
        eprintln!("usage: soak_crash CRASHES SEED");
        return ExitCode::FAILURE;
    };
    let (start, mut tried) = (Instant::now(), 0);
    loop {
        for options in formats(seed) {
            let record_bytes = if seed.is_multiple_of(3) { 256 << 10 } else { 32 << 10 };
            let live = LiveOptions { record_bytes, ..LiveOptions::default() };
            let mut history = History::start(make(&options), &live, seed);
            history.run(200, 1 + seed % 8);
            let (recording, trees) = history.end(seed.is_multiple_of(2));
            cuts(
                recording,
                (500, seed),
                |seed| Unflushed::Torn { seed },
                |cut| {
                    judge(&cut, &trees, tried % 20 == 0);
                    tried += 1;
                },
            );
            println!("seed {seed}: {tried} crashes in {:.0} s", start.elapsed().as_secs_f64());
            seed += 1;
            if wanted > 0 && tried >= wanted {
                return ExitCode::SUCCESS;
            }
        }
    }
}
