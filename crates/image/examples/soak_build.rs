//! Builds random trees in random formats and has outside judges look at each image; needs root.
//!
//! `cargo run --release -p undercroft-image --example soak_build -- COUNT SEED` takes the seeds from
//! SEED on; one seed always gives the same tree and format.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use undercroft_testkit::image::combination::Combination;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(count)), Some(Ok(first)), None) = (numbers.next(), numbers.next(), numbers.next())
    else {
        eprintln!("usage: soak_build COUNT SEED");
        return ExitCode::FAILURE;
    };
    let (next, failed, enlarged) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count) {
            let combination = Combination::new(first.wrapping_add(seed));
            let size = Combination::smallest(combination.seed).surplus();
            let size = size.and_then(|surplus| match surplus {
                ..=0 => Ok(()),
                _ => Err(format!("the smallest volume has {surplus} bytes too many")),
            });
            match size.and_then(|()| combination.run()) {
                Ok(larger) => _ = enlarged.fetch_add(larger.into(), Ordering::Relaxed),
                Err(error) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    println!("{combination}\n{error}\n");
                }
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (failed, enlarged) = (failed.into_inner(), enlarged.into_inner());
    println!("{count} images, {failed} wrong; {enlarged} needed the size that an error named");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
