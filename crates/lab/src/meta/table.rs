//! The table of the experiment on empty files.

use super::outcome::{MetaOutcome, Speed};
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{percent, thousands};
use crate::statistics::Estimate;
use crate::statistics::Spread;

/// Writes a row for each operation of each outcome. Where another place ran the same case in turn,
/// the first such is what the others are compared with, round by round.
pub(crate) fn write(outcomes: &[&MetaOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .words("operation")
        .words("target")
        .numbers("directories")
        .numbers("threads")
        .group("calls/s")
        .numbers("variation")
        .numbers("ratio")
        .group("with sync")
        .numbers("ratio")
        .group("CPU us/call");
    for one in outcomes {
        let same = |other: &&&MetaOutcome| {
            (other.directories, other.threads) == (one.directories, one.threads)
        };
        let first = outcomes.iter().find(same).filter(|first| first.target != one.target);
        for (index, speed) in one.operations.iter().enumerate() {
            let peer = first.and_then(|first| first.operations.get(index));
            let spread = Spread::of(&speed.per_second);
            table.row([
                speed.operation.name().to_owned(),
                one.target.clone(),
                one.directories.to_string(),
                one.threads.to_string(),
                median(&speed.per_second),
                percent(if spread.mean > 0.0 { spread.stddev / spread.mean } else { 0.0 }),
                ratio(speed, peer, |speed| &speed.per_second),
                median(&speed.durable_per_second),
                ratio(speed, peer, |speed| &speed.durable_per_second),
                format!("{:.2}", speed.cpu_ns_per_call / 1e3),
            ]);
        }
    }
    blocks.table(table);
}

/// The median of the ratios of the rounds with its interval; nothing without a place to compare with.
fn ratio(speed: &Speed, peer: Option<&Speed>, rates: impl Fn(&Speed) -> &Vec<f64>) -> String {
    let ratio = peer.and_then(|peer| Estimate::of_ratios(rates(speed), rates(peer)));
    ratio.map_or_else(String::new, |ratio| ratio.to_string())
}

/// The median of the rounds.
fn median(values: &[f64]) -> String {
    Estimate::of(values).map_or_else(String::new, |estimate| thousands(estimate.middle))
}
