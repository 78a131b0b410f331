//! The tables of 2022: tags by depth.

use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::{Estimate, Rule};
use crate::tags::outcome::{PolicyName, TagsOutcome};

/// Depths of both tables.
const DEPTHS: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Thousands of I/Os a second with their deviations: one hardware queue, before the patch and with it.
const OWN: [[(f64, f64); 6]; 2] = [
    [
        (1681.1, 1.6),
        (2633.0, 12.7),
        (6940.8, 16.3),
        (8172.3, 617.5),
        (8391.7, 367.1),
        (8606.1, 351.2),
    ],
    [
        (1721.8, 15.1),
        (3016.7, 3.8),
        (7543.0, 89.4),
        (8132.5, 303.4),
        (8324.2, 230.6),
        (8401.8, 284.7),
    ],
];
/// The same with one set of tags shared by 20 hardware queues.
const SHARED: [[(f64, f64); 6]; 2] = [
    [(1081.0, 2.3), (957.2, 1.5), (1699.1, 5.7), (6178.2, 124.6), (12227.9, 37.7), (13286.6, 92.9)],
    [(1081.8, 2.8), (1316.5, 5.4), (2364.4, 1.8), (6151.4, 20.0), (11893.6, 17.5), (12385.6, 18.4)],
];
const SOURCE: &str = "Gabriel Krisman Bertazi, \u{201c}sbitmap: Use single per-bitmap counting to wake up queued \
     tags\u{201d}, linux-block, November 2022. fio, random writes with 64 outstanding each on null_blk, 20 CPUs; \
     means and deviations of five runs, thousands of I/Os a second.";
const DIFFERS: &str = "The source had 20 CPUs, so that waiters and completions ran at once; with few CPUs a wake-up \
     costs a switch of threads, and granting fewer of them is worth more. The device here is simulated \
     in the same process, as null_blk is in the kernel.";

/// One hardware queue.
pub(crate) fn own(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::TagsDepth(_)));
    let found = outcomes(&sections, Outcome::tags);
    let mut findings = gains(&found, &OWN);
    findings.push(deeper(&found, PolicyName::Counters, &OWN[1]));
    Chapter {
        id: "tags-depth",
        title: "Counters that only grow: one hardware queue",
        question: "A device takes a few requests at a time, and each needs a tag; submitters that find none sleep. \
             Who is woken when tags come back, and does it cost less to count completions and \
             wake-ups than to count each batch down to zero?",
        source: SOURCE,
        published: published(&OWN),
        findings,
        differs: DIFFERS,
        sections,
    }
}

/// One set shared by many hardware queues.
pub(crate) fn shared(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::TagsShared(_)));
    let found = outcomes(&sections, Outcome::tags);
    let mut findings = gains(&found, &SHARED);
    findings.push(deeper(&found, PolicyName::Counters, &SHARED[1]));
    Chapter {
        id: "tags-shared",
        title: "Counters that only grow: one set of tags for 20 hardware queues",
        question: "Hardware queues of one controller may share their tags. Before the patch, a set of four tags was \
             slower than one of two: does counting mend that?",
        source: SOURCE,
        published: published(&SHARED),
        findings,
        differs: DIFFERS,
        sections,
    }
}

/// The published table.
fn published(rows: &[[(f64, f64); 6]; 2]) -> Blocks {
    let table = DEPTHS
        .iter()
        .fold(Table::new().words("queue size"), |table, depth| table.numbers(&depth.to_string()));
    let mut table = table;
    for (name, row) in ["6.1-rc2 (cyclic-8)", "patched (counters)"].into_iter().zip(rows) {
        let cells = row.iter().map(|(mean, deviation)| format!("{mean:.1}K ({deviation:.1}K)"));
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    let mut blocks = Blocks::default();
    blocks.table(table);
    blocks
}

/// Counters beside cyclic batches, where waiters are many: up to eight tags; and beyond.
fn gains(found: &[&TagsOutcome], published: &[[(f64, f64); 6]; 2]) -> Vec<Finding> {
    let ratio = |depth: u32| {
        let own = of(found, PolicyName::Counters, depth)?;
        let other = of(found, PolicyName::Cyclic8, depth)?;
        let ratio = Estimate::of_ratios(&own.rate.iops_of_runs, &other.rate.iops_of_runs)?;
        Some((format!("{depth} tags"), ratio))
    };
    let finding = |claim: &str, rule: Rule, columns: std::ops::Range<usize>| Finding {
        claim: claim.to_owned(),
        rule,
        unit: TIMES,
        published: DEPTHS[columns.clone()]
            .iter()
            .zip(published[1][columns.clone()].iter().zip(&published[0][columns.clone()]))
            .map(|(depth, (own, other))| format!("{:.2} at {depth}", own.0 / other.0))
            .collect::<Vec<_>>()
            .join(", "),
        measured: DEPTHS[columns].iter().filter_map(|depth| ratio(*depth)).collect(),
    };
    vec![
        finding(
            "With few tags, counters are at least as fast as cyclic batches: their rate as a share of the other's",
            Rule::AtLeast(0.95),
            0..3,
        ),
        finding("With more tags they lose little or nothing", Rule::AtLeast(0.9), 3..6),
    ]
}

/// More tags are never slower: each depth beside the one before.
fn deeper(found: &[&TagsOutcome], policy: PolicyName, published: &[(f64, f64); 6]) -> Finding {
    let pairs = DEPTHS.windows(2).zip(published.windows(2));
    let (mut measured, mut words) = (Vec::new(), Vec::new());
    for (depths, rates) in pairs {
        words.push(format!("{:.2} at {}", rates[1].0 / rates[0].0, depths[1]));
        let both = of(found, policy, depths[1]).zip(of(found, policy, depths[0]));
        let ratio = both.and_then(|(own, other)| {
            Estimate::of_ratios(&own.rate.iops_of_runs, &other.rate.iops_of_runs)
        });
        measured
            .extend(ratio.map(|ratio| (format!("{} beside {} tags", depths[1], depths[0]), ratio)));
    }
    Finding {
        claim: format!(
            "With {policy}, twice the tags are never slower: the rate as a share of that with half as many"
        ),
        rule: Rule::AtLeast(0.95),
        unit: TIMES,
        published: words.join(", "),
        measured,
    }
}

fn of<'a>(found: &[&'a TagsOutcome], policy: PolicyName, depth: u32) -> Option<&'a TagsOutcome> {
    found.iter().find(|one| (one.policy, one.depth) == (policy, depth)).copied()
}
