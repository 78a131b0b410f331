//! Queue and completion affinity of 2008.

use super::outcome::{AffinityOutcome, Mechanism, Placement, Workload};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, OF_ALL, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::{Estimate, Rule};

/// Rows of the first table: 32 CPUs, 144 disks.
const ROWS: [(&str, f64, f64, f64); 20] = [
    ("X X X", 3859.9, 1.190_067, 0.0502),
    ("X X A", 3856.3, 1.191_220, 0.0490),
    ("X X I", 3850.3, 1.192_992, 0.0508),
    ("X A X", 3853.9, 1.191_891, 0.0503),
    ("X A A", 3853.5, 1.191_935, 0.0507),
    ("X A I", 3856.6, 1.191_043, 0.0512),
    ("X I X", 3854.7, 1.191_674, 0.0491),
    ("X I A", 3855.3, 1.191_434, 0.0501),
    ("X I I", 3856.2, 1.191_128, 0.0506),
    ("I X X", 3857.0, 1.190_987, 0.0500),
    ("I X A", 3856.5, 1.191_082, 0.0496),
    ("I X I", 3853.7, 1.191_938, 0.0500),
    ("I A X", 3854.8, 1.191_675, 0.0502),
    ("I A A", 3855.1, 1.191_464, 0.0503),
    ("I A I", 3854.9, 1.191_627, 0.0483),
    ("I I X", 3853.4, 1.192_070, 0.0484),
    ("I I A", 3852.2, 1.192_403, 0.0502),
    ("I I I", 3854.0, 1.191_822, 0.0499),
    ("rq=0", 3854.8, 1.191_680, 0.0480),
    ("rq=1", 3854.0, 1.191_965, 0.0483),
];
const DIFFERS: &str = "The source had CPUs in cells of their own. On a machine with two CPUs the other CPU is either the \
     application's or the interrupts', and both share a cache, so a placement costs a message and no \
     cache line from afar.";

/// Large reads of devices that take their time.
pub(crate) fn large(records: &[Record]) -> Chapter<'_> {
    let sections = of_workload(records, Workload::Large);
    let found = outcomes(&sections, Outcome::affinity);
    let mut table = Table::new().words("A Q C").group("MBPS").numbers("Avg Lat").numbers("StdDev");
    for (name, mbps, latency, deviation) in ROWS {
        let cells = [format!("{mbps:.1}"), format!("{latency:.6}"), format!("{deviation:.4}")];
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    let mut published = Blocks::default();
    published.table(table);
    let by_mechanism = |figure: &dyn Fn(&[&AffinityOutcome]) -> Option<Estimate>| {
        let figures = Mechanism::ALL.into_iter().filter_map(|mechanism| {
            let rows: Vec<_> =
                found.iter().filter(|one| one.mechanism == mechanism).copied().collect();
            Some((mechanism.to_string(), figure(&rows)?))
        });
        figures.collect::<Vec<_>>()
    };
    Chapter {
        id: "affinity-large",
        title: "Queueing and completion on chosen CPUs",
        question: "An I/O may be queued on the CPU of its application (A), on the one that takes the device's interrupts \
             (I) or on another (X), and completed likewise. Does it matter where, when the devices are \
             busy with large reads?",
        source: "Alan D. Brunelle, \u{201c}IO queueing and complete affinity w/ threads: Some results\u{201d}, linux-kernel, \
             February 2008: 32-way ia64, 144 disks, large asynchronous direct reads.",
        published,
        findings: vec![
            Finding {
                claim: "Throughput hardly depends on the placement: the best row beside the worst".to_owned(),
                rule: Rule::AtMost(1.05),
                unit: TIMES,
                published: "1.002".to_owned(),
                measured: by_mechanism(&best_beside_worst),
            },
            Finding {
                claim: "Every I/O is queued and completed where its row says: the share of those that are, in the worst \
                     row"
                    .to_owned(),
                rule: Rule::AtLeast(1.0),
                unit: OF_ALL,
                published: "1 in all 18 rows".to_owned(),
                measured: by_mechanism(&placed_as_asked),
            },
        ],
        differs: DIFFERS,
        sections,
    }
}

/// Small reads that are answered at once.
pub(crate) fn cached(records: &[Record]) -> Chapter<'_> {
    let sections = of_workload(records, Workload::Cached);
    let found = outcomes(&sections, Outcome::affinity);
    let mut table = Table::new()
        .words("kernel")
        .group("MB/s, rq=0")
        .numbers("rq=1")
        .group("% sys, rq=0")
        .numbers("rq=1");
    for row in [
        ["2.6.24", "106.90", "", "10.1", ""],
        ["with interrupts between CPUs", "103.09", "98.81", "11.4", "6.0"],
        ["with threads", "106.85", "107.16", "10.4", "8.2"],
    ] {
        table.row(row.map(str::to_owned));
    }
    let mut published = Blocks::default();
    published.table(table);
    let beside = |figure: fn(&AffinityOutcome) -> &Vec<f64>| {
        Mechanism::ALL
            .into_iter()
            .filter_map(|mechanism| {
                let row = |rq_affinity| {
                    found.iter().find(|one| {
                        one.mechanism == mechanism
                            && one.placement == Placement::Free { rq_affinity }
                    })
                };
                let ratio = Estimate::of_ratios(figure(row(1)?), figure(row(0)?))?;
                Some((mechanism.to_string(), ratio))
            })
            .collect()
    };
    Chapter {
        id: "affinity-cached",
        title: "Completion near the submitter",
        question: "With rq_affinity = 1 a completion moves to a CPU that shares a cache with the submitter. Is that \
             worth the message, when the device answers at once?",
        source: "Alan D. Brunelle, the same thread, 14 February 2008: 4-way ia64, sequential reads of 4 KiB within 2 MB \
             that stay in the caches of two controllers.",
        published,
        findings: vec![
            Finding {
                claim: "rq_affinity = 1 costs no throughput: the rate beside that with 0"
                    .to_owned(),
                rule: Rule::AtLeast(0.95),
                unit: TIMES,
                published: "1.003 by threads, 0.958 by interrupts".to_owned(),
                measured: beside(|one| &one.rate.iops_of_runs),
            },
            Finding {
                claim: "rq_affinity = 1 saves CPU time: that of an I/O beside that with 0"
                    .to_owned(),
                rule: Rule::AtMost(1.0),
                unit: TIMES,
                published: "0.78 by threads, 0.53 by interrupts, of the time in the kernel"
                    .to_owned(),
                measured: beside(|one| &one.rate.cpu_ns_of_runs),
            },
        ],
        differs: DIFFERS,
        sections,
    }
}

fn of_workload(records: &[Record], workload: Workload) -> Vec<&[Record]> {
    newest(records, |of| of.affinity().is_some_and(|one| one.workload == workload))
}

/// The rate of the fastest placement beside that of the slowest, run by run, rows with three places.
fn best_beside_worst(rows: &[&AffinityOutcome]) -> Option<Estimate> {
    let pinned = rows.iter().filter(|one| matches!(one.placement, Placement::Pinned { .. }));
    let rates: Vec<&Vec<f64>> = pinned.map(|one| &one.rate.iops_of_runs).collect();
    let runs = rates.iter().map(|rates| rates.len()).min()?;
    let ratios = (0..runs).map(|run| {
        let of_run = rates.iter().map(|rates| rates[run]);
        of_run.clone().fold(0.0, f64::max) / of_run.fold(f64::INFINITY, f64::min)
    });
    Estimate::of(&ratios.collect::<Vec<_>>())
}

/// The least share, of all rows with three places, of I/Os that were counted where the row says.
fn placed_as_asked(rows: &[&AffinityOutcome]) -> Option<Estimate> {
    let share =
        |local: bool, on: f64, off: f64| if local { on / (on + off) } else { off / (on + off) };
    let of_row = |one: &&&AffinityOutcome| {
        let queued = share(one.on.queue == one.on.application, one.q_local, one.q_remote);
        let completed =
            share(one.on.completion == Some(one.on.interrupt), one.c_local, one.c_remote);
        queued.min(completed)
    };
    let pinned = rows.iter().filter(|one| matches!(one.placement, Placement::Pinned { .. }));
    pinned.map(|one| of_row(&one)).reduce(f64::min).map(Estimate::exact)
}
