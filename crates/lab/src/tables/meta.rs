//! The table of the experiment on empty files.

use super::number::{percent, thousands};
use crate::blocks::{Blocks, Table};
use crate::outcome::meta::{MetaOutcome, Speed};
use crate::spread::Spread;

/// Writes a row for each operation of each outcome. Where another place ran the same case in turn,
/// the first such is what the others are compared with, round by round.
pub(super) fn write(outcomes: &[&MetaOutcome], blocks: &mut Blocks) {
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
                thousands(median(&speed.per_second)),
                percent(if spread.mean > 0.0 { spread.stddev / spread.mean } else { 0.0 }),
                ratio(speed, peer, |speed| &speed.per_second),
                thousands(median(&speed.durable_per_second)),
                ratio(speed, peer, |speed| &speed.durable_per_second),
                format!("{:.2}", speed.cpu_ns_per_call / 1e3),
            ]);
        }
    }
    blocks.table(table);
}

/// The median of the ratios of the rounds; nothing without a place to compare with.
fn ratio(speed: &Speed, peer: Option<&Speed>, rates: impl Fn(&Speed) -> &Vec<f64>) -> String {
    let Some(peer) = peer else { return String::new() };
    let pairs = rates(speed).iter().zip(rates(peer));
    let ratios: Vec<f64> = pairs.map(|(own, other)| own / other).collect();
    format!("{:.2}", median(&ratios))
}

/// The middle value; of two, the lower.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}
