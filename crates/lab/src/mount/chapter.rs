//! File systems in use, of the affinity thread of 2008.

use super::outcome::{MountOutcome, Step, Tunables};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, OF_ALL, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::{Estimate, Rule};

/// Averages and deviations in seconds: with interrupts between CPUs, then with threads, by setting in
/// the order of [`Tunables::ROWS`].
const PUBLISHED: [(Step, [[f64; 4]; 5]); 4] = [
    (
        Step::Mkfs,
        [
            [30.322, 4.551, 31.069, 3.452],
            [30.058, 4.321, 31.719, 2.395],
            [31.328, 3.121, 31.345, 3.209],
            [31.032, 3.515, 31.997, 3.099],
            [30.319, 4.624, 32.266, 2.035],
        ],
    ),
    (
        Step::Untar,
        [
            [21.971, 1.215, 22.398, 1.076],
            [22.365, 2.010, 22.517, 1.733],
            [21.390, 0.976, 22.698, 2.259],
            [21.500, 1.009, 22.377, 1.528],
            [21.761, 1.378, 22.339, 0.926],
        ],
    ),
    (
        Step::Make,
        [
            [543.296, 5.384, 542.820, 4.607],
            [542.312, 5.467, 544.422, 3.798],
            [544.940, 4.746, 543.856, 4.152],
            [544.399, 5.166, 543.636, 4.315],
            [543.577, 5.478, 544.594, 3.786],
        ],
    ),
    (
        Step::Clean,
        [
            [20.308, 3.179, 20.242, 2.991],
            [20.156, 3.097, 20.008, 2.845],
            [20.111, 2.791, 20.117, 2.661],
            [20.247, 2.953, 20.147, 2.862],
            [20.316, 3.283, 20.072, 2.872],
        ],
    ),
];

/// A project built on mounted volumes.
pub(crate) fn chapter(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| of.mount().is_some());
    let found = outcomes(&sections, Outcome::mount);
    let others = [Step::Mkfs, Step::Untar, Step::Clean];
    Chapter {
        id: "mount",
        title: "File systems with queues on chosen CPUs",
        question: "The same choices of CPUs as above, but under whole file systems: one is made, a source tree is \
             unpacked, compiled and cleaned up, on several disks at a time. Does the placement of queueing and \
             completion show in the times of such work?",
        source: "Alan D. Brunelle, the same thread, 12 and 13 February 2008: 32-way ia64, 12 disks with ext2 at a time, \
             the source of Linux, make -j4; ten runs with each of two kernels.",
        published: published(),
        findings: vec![
            Finding {
                claim: "The placement does not show in the time of make: each setting beside the default".to_owned(),
                rule: Rule::Between(0.97, 1.03),
                unit: TIMES,
                published: "0.998 to 1.003".to_owned(),
                measured: ratios(&found, &[Step::Make]),
            },
            Finding {
                claim: "Nor in the other steps, which differ more from run to run".to_owned(),
                rule: Rule::Between(0.9, 1.1),
                unit: TIMES,
                published: "0.974 to 1.039".to_owned(),
                measured: ratios(&found, &others),
            },
            Finding {
                claim: "Every I/O is queued where it was submitted, unless the setting is q1: the share of those \
                     that are, in the worst setting"
                    .to_owned(),
                rule: Rule::AtLeast(1.0),
                unit: OF_ALL,
                published: String::new(),
                measured: queued_locally(&found).map(|share| ("q0".to_owned(), share)).into_iter().collect(),
            },
        ],
        differs: "The volumes are XFS in files, mounted through FUSE, so most I/O is submitted by threads of the server \
             and not by the programs. The end of an I/O is noticed by the ring that started it, on the CPU where it was \
             queued, and not by an interrupt on a fixed one: with q0 and c1 completions have a longer way here. The \
             project is smaller than Linux, and mkfs is short, as XFS writes little of an empty volume.",
        sections,
    }
}

fn published() -> Blocks {
    let mut table = Table::new()
        .words("step")
        .words("setting")
        .group("interrupts: Avg")
        .numbers("Std Dev")
        .group("threads: Avg")
        .numbers("Std Dev");
    for (step, rows) in PUBLISHED {
        if step != Step::Mkfs {
            table.rule('-');
        }
        for (tunables, row) in Tunables::ROWS.iter().zip(rows) {
            let names = [step.name().to_owned(), tunables.to_string()];
            table.row(names.into_iter().chain(row.map(|seconds| format!("{seconds:.3}"))));
        }
    }
    let mut blocks = Blocks::default();
    blocks.table(table);
    blocks
}

/// Seconds of these steps beside those with the default setting, run by run.
fn ratios(found: &[&MountOutcome], steps: &[Step]) -> Vec<(String, Estimate)> {
    let Some(first) = found.iter().find(|one| one.tunables == Tunables::ROWS[0]) else {
        return Vec::new();
    };
    let rows = || found.iter().filter(|one| one.tunables != first.tunables);
    let ratio = |step: Step, one: &MountOutcome| {
        let name = format!("{}, {}", step.name(), one.tunables);
        Some((name, Estimate::of_ratios(&one.runs_of(step), &first.runs_of(step))?))
    };
    steps.iter().flat_map(|&step| rows().filter_map(move |one| ratio(step, one))).collect()
}

/// The least share of I/Os that were queued on the CPU of their submitter, of the settings that ask
/// for it.
fn queued_locally(found: &[&MountOutcome]) -> Option<Estimate> {
    let rows = found.iter().filter(|one| !one.tunables.queue_affinity);
    let shares = rows.map(|one| one.q_local / (one.q_local + one.q_remote));
    shares.reduce(f64::min).map(Estimate::exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_ratios_are_those_of_the_published_table() {
        let ratios = |wanted: fn(Step) -> bool| {
            let rows = PUBLISHED.iter().filter(move |(step, _)| wanted(*step));
            let all = rows.flat_map(|(_, rows)| {
                rows[1..].iter().flat_map(|row| [row[0] / rows[0][0], row[2] / rows[0][2]])
            });
            let all: Vec<f64> = all.collect();
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let most = all.iter().copied().fold(0.0, f64::max);
            format!("{least:.3} to {most:.3}")
        };
        let claims = chapter(&[]).findings;
        assert_eq!(ratios(|step| step == Step::Make), claims[0].published);
        assert_eq!(ratios(|step| step != Step::Make), claims[1].published);
    }
}
