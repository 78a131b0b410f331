//! Tables of the experiments on tags.

use super::outcome::{PolicyName, TagsOutcome};
use crate::report::blocks::{Blocks, Table};
use crate::report::number::{latency_cells, percent, rate_cells, thousands_with_deviation};
use crate::statistics::Estimate;

/// I/Os a second with deviations: a row for each policy, a column for each depth.
pub(crate) fn write_by_depth(outcomes: &[&TagsOutcome], blocks: &mut Blocks) {
    let mut depths: Vec<u32> = outcomes.iter().map(|outcome| outcome.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let mut table = Table::new().words("queue size");
    for depth in &depths {
        table = table.numbers(&depth.to_string());
    }
    let mut policies = Vec::new();
    for outcome in outcomes {
        if !policies.contains(&outcome.policy) {
            policies.push(outcome.policy);
        }
    }
    for policy in policies {
        let cells = depths.iter().map(|&depth| {
            let found = outcomes.iter().find(|one| one.policy == policy && one.depth == depth);
            found.map_or_else(String::new, |one| {
                thousands_with_deviation(one.rate.iops, one.rate.stddev)
            })
        });
        table.row([policy.to_string()].into_iter().chain(cells));
    }
    blocks.table(table);
}

/// Everything that was counted, a row for each outcome.
pub(crate) fn write_details(outcomes: &[&TagsOutcome], blocks: &mut Blocks) {
    let mut table = Table::new()
        .numbers("depth")
        .words("policy")
        .words("shares")
        .words("reader")
        .group("IOPS")
        .numbers("stddev")
        .numbers("CV")
        .numbers("of cyclic-8")
        .group("sleeps/get")
        .numbers("wakes/put")
        .numbers("used")
        .group("switches/IO vol")
        .numbers("invol")
        .numbers("CPU ns/IO")
        .group("lat mean us")
        .numbers("p50")
        .numbers("p99")
        .numbers("max");
    let mut last_depth = None;
    for one in outcomes {
        if last_depth.replace(one.depth).is_some_and(|last| last != one.depth) {
            table.rule('-');
        }
        let [iops, stddev] = rate_cells(&one.rate);
        let [mean, p50, p99] = latency_cells(&one.latency);
        table.row([
            one.depth.to_string(),
            one.policy.to_string(),
            if one.fair { "fair" } else { "none" }.to_owned(),
            one.reader.clone(),
            iops,
            stddev,
            percent(one.rate.variation()),
            baseline(one, outcomes).map_or_else(String::new, |other| ratio(one, other)),
            format!("{:.3}", one.sleeps_per_get),
            format!("{:.3}", one.wakes_per_put),
            format!("{:.3}", one.wakes_used_per_put),
            format!("{:.3}", one.rate.voluntary_switches_per_io),
            format!("{:.3}", one.rate.involuntary_switches_per_io),
            format!("{:.0}", one.rate.cpu_ns_per_io),
            mean,
            p50,
            p99,
            format!("{:.1}", one.latency.max),
        ]);
    }
    blocks.table(table);
}

/// What `one` is compared with: the same case with the eight cyclic queues of 2014.
fn baseline<'a>(one: &TagsOutcome, outcomes: &[&'a TagsOutcome]) -> Option<&'a TagsOutcome> {
    let same = |other: &&&TagsOutcome| {
        other.policy == PolicyName::Cyclic8
            && (other.depth, other.fair, &other.reader) == (one.depth, one.fair, &one.reader)
    };
    outcomes.iter().find(same).copied().filter(|other| other.policy != one.policy)
}

/// How fast `one` was beside `other`, run by run: the median of the ratios with its interval.
fn ratio(one: &TagsOutcome, other: &TagsOutcome) -> String {
    let ratio = Estimate::of_ratios(&one.rate.iops_of_runs, &other.rate.iops_of_runs);
    ratio.map_or_else(String::new, |ratio| ratio.to_string())
}
