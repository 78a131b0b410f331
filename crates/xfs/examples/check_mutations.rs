//! The long form of the mutation test: checks a volume with mutated metadata again and again.
//!
//! `cargo run --release -p undercroft-xfs --example check_mutations -- IMAGE ROUNDS SEED`, where
//! IMAGE has the default format with blocks of 4 KiB and fits in memory.

#[path = "../tests/mutation/mod.rs"]
mod mutation;

use mutation::Subject;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, image, rounds, seed] = &arguments[..] else {
        return Err("usage: check_mutations IMAGE ROUNDS SEED".into());
    };
    let mut subject = Subject::new(&std::fs::read(image)?, seed.parse::<u64>()?.max(1))?;
    let pristine = subject.check()?;
    println!("{} pieces of metadata, {pristine:?}", subject.pieces());
    let (mut unseen, mut most) = (0_u64, 0);
    let rounds: u64 = rounds.parse()?;
    for _ in 0..rounds {
        if let Some(report) = subject.round()? {
            unseen += u64::from(report.is_clean());
            most = most.max(report.bytes);
        }
    }
    println!("{rounds} rounds, {unseen} found clean, at most {most} bytes read in one");
    Ok(())
}
