//! Verbs on volumes with mutated metadata, for as many rounds as one likes.
//!
//! `cargo run --release -p undercroft-fs --example soak_mutations -- ROUNDS SEED`. The kernel makes
//! the volume, which needs root.

#![allow(clippy::unwrap_used, reason = "a failing step ends the soak")]

use std::error::Error;
use undercroft_judges::damage::volume;
use undercroft_testkit::fs::stand::{Outcome, Stand};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [rounds, seed] = &arguments[1..] else {
        return Err("usage: soak_mutations ROUNDS SEED".into());
    };
    let (rounds, seed) = (rounds.parse::<u64>()?, seed.parse::<u64>()?);
    let (_directory, image) = volume()?;
    let mut stand = Stand::new(std::fs::read(image)?, seed)?;
    let mut outcome = Outcome::default();
    while outcome.rounds < rounds {
        let known = outcome.overwritten.len();
        stand.round(&mut outcome)?;
        outcome.overwritten[known..].iter().for_each(|found| println!("{found}"));
        if outcome.rounds.is_multiple_of(1000) || outcome.rounds == rounds {
            let Outcome { rounds, unopened, refused, overwritten, longest } = &outcome;
            println!(
                "{rounds} rounds: {unopened} volumes refused, {refused} verbs refused, {} over other \
                 files, the longest took {longest:?}",
                overwritten.len()
            );
        }
    }
    if outcome.overwritten.is_empty() { Ok(()) } else { Err("files lost bytes".into()) }
}
