//! A loop that is always the same: its times say what else the machine did.

pub(crate) mod figure;
mod outcome;
pub(crate) mod table;

use std::hint::black_box;
use std::time::Instant;

pub(crate) use outcome::CalibrationOutcome;

use crate::outcome::Outcome;

/// Runs, and rounds of a run: some 20 ms each.
const RUNS: usize = 9;
const ROUNDS: u32 = 8_000_000;

/// Times the loop behind a step of a report.
#[must_use]
pub fn calibrate(step: &str) -> Outcome {
    let ns_of_runs = (0..RUNS).map(|_| run()).collect();
    Outcome::Calibration(CalibrationOutcome { step: step.to_owned(), ns_of_runs })
}

/// Nanoseconds a round. Each round needs the one before (xorshift), so that nothing runs at once.
fn run() -> f64 {
    let begin = Instant::now();
    let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
}
