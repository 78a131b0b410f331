//! Compares our check with the newest `xfs_repair -n` on volumes with one wrong field each, whose
//! checksums are right. Fails when they differ about a field that CONTRIBUTING.md does not list.
//!
//! `cargo run --release -p undercroft-xfs --example soak_check -- ROUNDS SEED [--all]`. With `--all`
//! known differences are printed, too. The kernel makes the volume, which needs root.

use std::error::Error;
use std::path::Path;
use undercroft_judges::damage::volume;
use undercroft_testkit::xfs::fields::{Difference, Fields, old_volume};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (rounds, seed, all) = match &arguments[1..] {
        [rounds, seed] => (rounds, seed, false),
        [rounds, seed, all] if all == "--all" => (rounds, seed, true),
        _ => return Err("usage: soak_check ROUNDS SEED [--all]".into()),
    };
    let mut unknown = 0;
    for (directory, image) in [volume()?, old_volume()?] {
        let fields = Fields::new(&image)?;
        println!("{} fields", fields.count());
        unknown += compare(&fields, directory.path(), rounds.parse()?, seed.parse()?, all)?;
    }
    if unknown == 0 {
        Ok(())
    } else {
        Err("add them to CONTRIBUTING.md, or repair the check".into())
    }
}

/// Compares both judges; the number of unknown differences.
fn compare(
    fields: &Fields,
    directory: &Path,
    rounds: u64,
    seed: u64,
    all: bool,
) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let tell = |difference: &Difference| {
        if all || !difference.is_known {
            println!("{}{difference}", if difference.is_known { "known: " } else { "" });
        }
    };
    let outcome = fields.compare(directory, rounds, seed, &tell)?;
    let unknown = outcome.differences.iter().filter(|it| !it.is_known).count();
    println!(
        "{} volumes compared, {} refused by both, {} known differences, {unknown} unknown",
        outcome.compared,
        outcome.refused,
        outcome.differences.len() - unknown
    );
    Ok(unknown)
}
