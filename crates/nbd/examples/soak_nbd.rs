//! Breaks connections and kills servers under a load of writes and flushes, and looks whether
//! anything is lost.
//!
//! ```text
//! cargo run --release -p undercroft-nbd --example soak_nbd -- BREAKS SEED
//! ```

use std::error::Error;

use undercroft_testkit::nbd::stand::Stand;

/// Breaks of one server, before a fresh one.
const EACH: u64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        arguments.next().map_or(Ok(default), |text| text.parse::<u64>().map_err(Box::new))
    };
    let (breaks, seed) = (number(1000)?, number(1)?);
    let stands = [
        Stand::CachedFile,
        Stand::Qcow2,
        Stand::Cut { connections: 1 },
        Stand::Cut { connections: 4 },
        Stand::Own { connections: 1 },
        Stand::Own { connections: 4 },
    ];
    let rounds = breaks.div_ceil(EACH);
    for (round, stand) in (0..rounds).zip(stands.iter().cycle()) {
        stand.run(seed + round, EACH.min(breaks - round * EACH));
        if (round + 1).is_multiple_of(10) || round + 1 == rounds {
            println!("{} of {breaks} breaks", breaks.min((round + 1) * EACH));
        }
    }
    println!("{breaks} breaks: no write that was answered was lost");
    Ok(())
}
