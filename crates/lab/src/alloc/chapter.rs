//! The near search of 2019.

use super::outcome::{AllocOutcome, SearchOutcome};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, TIMES};
use crate::report::chapter::{every, newest, outcomes};
use crate::statistics::{Estimate, Rule};

const SOURCE: &str = "Brian Foster, \u{201c}xfs: rework near mode extent allocation\u{201d}, version 3, linux-xfs, 2019: 64 writers \
     fill 70 % of 500 GB in 16 groups with files of 4 KiB to 500 MB, each synced; 16 CPUs, a striped \
     logical volume.";
const DIFFERS: &str = "The volume is a sparse file whose data is dropped, so times are the allocator's alone and the disks' \
     part is missing. How the sizes of files were distributed is not published. In the source a group \
     whose header was being written was passed over; here locks are held for microseconds, so fewer \
     extents leave their group, unless --header-writes simulates the difference.";

/// What the source says of one free space: before the patch and with it.
struct Published {
    /// Seconds that the run took.
    seconds: [f64; 2],
    /// Extents, and the least possible number.
    extents: [(u32, u32); 2],
    /// Per cent of the extents that are in another group than their hint.
    other_group: [f64; 2],
}

const CLEAN: Published = Published {
    seconds: [3536.0, 3539.0],
    extents: [(40_732, 40_720), (40_730, 40_720)],
    other_group: [8.48, 8.67],
};
const RANDOM: Published = Published {
    seconds: [4052.0, 4116.0],
    extents: [(82_107, 72_320), (82_311, 72_323)],
    other_group: [16.66, 17.23],
};

impl Published {
    fn table(&self) -> Blocks {
        let mut table = Table::new()
            .words("")
            .numbers("seconds")
            .numbers("extents")
            .numbers("least possible")
            .numbers("in another group");
        for (at, name) in ["before (near-2018)", "with the patch (near)"].into_iter().enumerate() {
            table.row([
                name.to_owned(),
                format!("{:.0}", self.seconds[at]),
                self.extents[at].0.to_string(),
                self.extents[at].1.to_string(),
                format!("{:.2} %", self.other_group[at]),
            ]);
        }
        let mut blocks = Blocks::default();
        blocks.table(table);
        blocks
    }
}

/// The workload on a clean volume.
pub(crate) fn clean(records: &[Record]) -> Chapter<'_> {
    workload(
        records,
        "clean",
        &CLEAN,
        "alloc-clean",
        "Near mode on a clean volume",
        "Near mode looks for space close to a file. Do extents stay as close when it looks by size and by place at \
         once, instead of walking through all free space?",
    )
}

/// The workload on randomised free space.
pub(crate) fn random(records: &[Record]) -> Chapter<'_> {
    workload(
        records,
        "random",
        &RANDOM,
        "alloc-random",
        "Near mode on randomised free space",
        "Where free space consists of many extents of random lengths, the new search may pass over close ones. How \
         much further away do extents end up?",
    )
}

fn workload<'a>(
    records: &'a [Record],
    free_space: &str,
    source: &Published,
    id: &'static str,
    title: &'static str,
    question: &'static str,
) -> Chapter<'a> {
    let is_it = |of: &Outcome| of.alloc().is_some_and(|one| one.free_space == free_space);
    // A session for each seed.
    let sections = every(records, is_it);
    let pairs: Vec<_> = sections.iter().filter_map(|section| both(section)).collect();
    let layouts =
        || pairs.iter().filter_map(|(near, old)| near.layout.as_ref().zip(old.layout.as_ref()));
    let named = |name: &str, figures: &[f64]| -> Vec<(String, Estimate)> {
        Estimate::of(figures).map(|figure| (name.to_owned(), figure)).into_iter().collect()
    };
    let [before, with] = source.other_group;
    let points: Vec<f64> = layouts()
        .map(|(near, old)| 100.0 * (near.switches_with_fillers - old.switches_with_fillers))
        .collect();
    let extents: Vec<f64> =
        layouts().map(|(near, old)| near.actual as f64 / old.actual as f64).collect();
    let rates: Vec<f64> = pairs.iter().map(|(near, old)| old.seconds / near.seconds).collect();
    Chapter {
        id,
        title,
        question,
        source: SOURCE,
        published: source.table(),
        findings: vec![
            Finding {
                claim: "No more extents leave the group of their hint: per cent in another group, the new search less \
                     the old"
                    .to_owned(),
                rule: Rule::AtMost(1.0),
                unit: "percentage points",
                published: format!("{:+.2} ({before} to {with} %)", with - before),
                measured: named("near less near-2018", &points),
            },
            Finding {
                claim: "Files are in as few extents: the new search beside the old".to_owned(),
                rule: Rule::AtMost(1.01),
                unit: TIMES,
                published: format!(
                    "{:.4}",
                    f64::from(source.extents[1].0) / f64::from(source.extents[0].0)
                ),
                measured: named("extents, near beside near-2018", &extents),
            },
            Finding {
                claim: "The workload is about as fast: the new search beside the old".to_owned(),
                rule: Rule::AtLeast(0.95),
                unit: TIMES,
                published: format!("{:.3}", source.seconds[0] / source.seconds[1]),
                measured: named("near beside near-2018", &rates),
            },
        ],
        differs: DIFFERS,
        sections,
    }
}

/// Single allocations where free extents near the hint are too short.
pub(crate) fn single(records: &[Record]) -> Chapter<'_> {
    let mut sections = every(records, |of| matches!(of, Outcome::AllocSearch(_)));
    let searches = outcomes(&sections, Outcome::search);
    let rates = |variant: &str| -> Vec<f64> {
        let hard = searches.iter().filter(|one| one.free_space == "pathological");
        hard.filter(|one| one.variant == variant).map(|one| one.per_second).collect()
    };
    let beside = |own: &str, other: &str| {
        let ratio = Estimate::of_ratios(&rates(own), &rates(other));
        ratio.map(|ratio| (format!("{own} beside {other}"), ratio)).into_iter().collect()
    };
    let growing = newest(records, |of| matches!(of, Outcome::AllocGrowth(_)));
    let growth = growth(&outcomes(&growing, Outcome::search));
    let mut published = Blocks::default();
    published.line("The cover letter calls the degradation by randomised free space \u{201c}significantly milder");
    published.line("than what occurs when the baseline algorithm encounters its worst case\u{201d}; figures of that case");
    published.line("are with the first version of the patch.");
    let chapter = Chapter {
        id: "alloc-single",
        title: "The worst case of the old search",
        question: "A million free extents near the hint are each a block too short. What does one allocation cost, and \
             how does that grow with the number of free extents?",
        source: SOURCE,
        published,
        findings: vec![
            Finding {
                claim: "The new search is at least ten times as fast there".to_owned(),
                rule: Rule::AtLeast(10.0),
                unit: TIMES,
                published: String::new(),
                measured: beside("near", "near-2018"),
            },
            Finding {
                claim: "An index in memory is faster again".to_owned(),
                rule: Rule::AtLeast(1.0),
                unit: TIMES,
                published: String::new(),
                measured: beside("indexed", "near"),
            },
            Finding {
                claim: "The cost of the new search grows less than the number of free extents: growth of the cost over \
                     growth of the number"
                    .to_owned(),
                rule: Rule::AtMost(0.1),
                unit: TIMES,
                published: String::new(),
                measured: growth,
            },
        ],
        differs: "Single allocations are timed, without files around them.",
        sections: Vec::new(),
    };
    sections.extend(growing);
    Chapter { sections, ..chapter }
}

/// By what the median cost of the new search grew from the fewest free extents to the most, over the
/// growth of their number.
fn growth(found: &[&SearchOutcome]) -> Vec<(String, Estimate)> {
    let near: Vec<_> = found.iter().filter(|one| one.variant == "near").collect();
    let ends =
        near.first().zip(near.last()).filter(|(few, many)| many.free_extents > few.free_extents);
    let figure = ends.map(|(few, many)| {
        let number = many.free_extents as f64 / few.free_extents as f64;
        let name = format!("{} to {} extents", few.free_extents, many.free_extents);
        (name, Estimate::once(many.latency.p50 / few.latency.p50 / number))
    });
    figure.into_iter().collect()
}

/// The outcomes of the new search and of the old one.
fn both(section: &[Record]) -> Option<(&AllocOutcome, &AllocOutcome)> {
    let of = |variant: &str| {
        let mut found = section.iter().filter_map(|one| one.outcome.alloc());
        found.find(|one| one.variant == variant)
    };
    of("near").zip(of("near-2018"))
}
