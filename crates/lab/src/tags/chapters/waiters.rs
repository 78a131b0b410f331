//! Many waiters: the herd, the variation of 2014, and fair shares.

use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, OF_MEAN, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::Spread;
use crate::statistics::{Estimate, Rule};
use crate::tags::outcome::{PolicyName, TagsOutcome};

const SOURCE_2014: &str = "Dave Chinner and Jens Axboe, \u{201c}xfs: wire up aio_fsync method\u{201d}, linux-fsdevel, June \
     2014: fs_mark with asynchronous fsync, several thousand kernel threads on a virtual machine with 16 CPUs.";
/// Wall times of six runs of the same test, in seconds, with files and I/Os a second.
const RUNS_2014: [(f64, u32, u32); 6] = [
    (298.151, 13_500, 30_000),
    (275.665, 15_000, 45_000),
    (190.665, 21_000, 65_000),
    (207.384, 20_000, 85_000),
    (239.574, 16_500, 50_000),
    (252.704, 17_000, 50_000),
];

/// A thousand threads for few tags.
pub(crate) fn herd(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::TagsHerd(_)));
    let found = outcomes(&sections, Outcome::tags);
    let switches = |policy| of(&found, policy).map(|one| &one.rate.voluntary_switches_of_runs);
    let mut table = Table::new().words("").numbers("context switches a second");
    for (kernel, rate) in [
        ("3.15", "about 250,000"),
        ("with the tag allocator of 2014, waiters not exclusive", "over 800,000"),
        ("with exclusive waiters, woken in batches", "about 400,000"),
    ] {
        table.row([kernel.to_owned(), rate.to_owned()]);
    }
    let mut published = Blocks::default();
    published.table(table);
    let beside = |policy| {
        let ratio = Estimate::of_ratios(switches(PolicyName::WakeAll)?, switches(policy)?)?;
        Some((format!("wake-all beside {policy}"), ratio))
    };
    let wakes = of(&found, PolicyName::Counters).map(|one| one.wakes_per_put);
    Chapter {
        id: "tags-herd",
        title: "The herd",
        question: "A thousand threads want one of a few tags. What does it cost to wake them all whenever one tag \
             comes back?",
        source: SOURCE_2014,
        published,
        findings: vec![
            Finding {
                claim: "Waking every waiter at least doubles the context switches of an I/O"
                    .to_owned(),
                rule: Rule::AtLeast(2.0),
                unit: TIMES,
                published: "800,000 / 400,000 a second = 2".to_owned(),
                measured: [PolicyName::Cyclic8, PolicyName::Counters]
                    .into_iter()
                    .filter_map(beside)
                    .collect(),
            },
            Finding {
                claim: "Counters grant at most one wake-up for each tag that comes back".to_owned(),
                rule: Rule::AtMost(1.0),
                unit: "wake-ups",
                published: String::new(),
                measured: wakes
                    .map(|wakes| ("wake-ups a put".to_owned(), Estimate::exact(wakes)))
                    .into_iter()
                    .collect(),
            },
        ],
        differs: "The source counts all context switches of the machine, those of fsync and of the page cache \
             with them; here there is nothing but tags.",
        sections,
    }
}

/// The same work, run by run.
pub(crate) fn variability(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::TagsVariability(_)));
    let found = outcomes(&sections, Outcome::tags);
    let mut table =
        Table::new().numbers("wall time, s").numbers("files a second").numbers("I/Os a second");
    for (seconds, files, ios) in RUNS_2014 {
        table.row([format!("{seconds:.1}"), files.to_string(), ios.to_string()]);
    }
    let mut published = Blocks::default();
    published.table(table);
    let files = Spread::of(&RUNS_2014.map(|(_, files, _)| f64::from(files)));
    Chapter {
        id: "tags-variability",
        title: "From run to run",
        question: "With the tag allocator of 2014 the same test took between three and five minutes. Is it the waking \
             of waiters that makes rates wander?",
        source: SOURCE_2014,
        published,
        findings: vec![Finding {
            claim: "The wake policies of Linux leave less variation than the source saw: deviation over mean of the \
                 I/Os a second"
                .to_owned(),
            rule: Rule::AtMost(files.stddev / files.mean),
            unit: OF_MEAN,
            published: format!("{:.3} of the files a second above", files.stddev / files.mean),
            measured: [PolicyName::Counters, PolicyName::Cyclic8, PolicyName::Cyclic1]
                .into_iter()
                .filter_map(|policy| {
                    let rates = &of(&found, policy)?.rate.iops_of_runs;
                    Some((policy.to_string(), Estimate::of_variation(rates)?))
                })
                .collect(),
        }],
        differs: "The source found in the end that most of it came from memory running out, which drove the kernel to \
             reclaim; the tags had a part through contention for their wait queues. Here nothing \
             reclaims memory.",
        sections,
    }
}

/// A small reader beside a large one.
pub(crate) fn fairness(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::TagsFairness(_)));
    let found = outcomes(&sections, Outcome::tags);
    let small = |fair: bool| {
        found.iter().find(|one| {
            one.policy == PolicyName::Counters && one.fair == fair && one.reader.ends_with(" x 1")
        })
    };
    let gain = small(false).zip(small(true)).and_then(|(without, with)| {
        Estimate::of_ratios(&with.rate.iops_of_runs, &without.rate.iops_of_runs)
    });
    Chapter {
        id: "tags-fairness",
        title: "Fair shares",
        question: "One reader asks for 512 bytes at a time, another keeps 256 large reads outstanding on the same tags. \
             Does the small one get its turn?",
        source: "",
        published: Blocks::default(),
        findings: vec![Finding {
            claim: "With fair shares the small reader does more reads a second than without"
                .to_owned(),
            rule: Rule::AtLeast(1.0),
            unit: TIMES,
            published: String::new(),
            measured: gain.map(|gain| ("counters".to_owned(), gain)).into_iter().collect(),
        }],
        differs: "The device is simulated: 300 us for a small read, and as many large ones a second as the published \
             case of two namespaces had.",
        sections,
    }
}

fn of<'a>(found: &[&'a TagsOutcome], policy: PolicyName) -> Option<&'a TagsOutcome> {
    found.iter().find(|one| one.policy == policy).copied()
}
