//! Asynchronous fsync of 2014.

use super::outcome::{FsyncOutcome, Mode};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::{Blocks, Table};
use crate::report::chapter::{Chapter, Finding, OF_MEAN, TIMES};
use crate::report::chapter::{newest, outcomes};
use crate::statistics::Spread;
use crate::statistics::{Estimate, Rule};

/// Five iterations of fs_mark: count, files a second, overhead of the program in microseconds.
const ITERATIONS: [(u64, f64, u64); 5] = [
    (800_000, 29_938.0, 13_459_475),
    (1_600_000, 28_023.7, 15_662_387),
    (2_400_000, 23_704.6, 16_451_761),
    (3_200_000, 16_976.8, 15_029_056),
    (4_000_000, 21_858.3, 15_591_604),
];

/// Small files, each made durable.
pub(crate) fn chapter(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::Fsync(_)));
    let found = outcomes(&sections, Outcome::fsync);
    let spread = Spread::of(&ITERATIONS.map(|(_, rate, _)| rate));
    let tickets = of(&found, "undercroft", Mode::Async);
    let each = of(&found, "undercroft", Mode::FsyncBeforeClose);
    let ratio = tickets
        .zip(each)
        .and_then(|(tickets, each)| Estimate::of_ratios(&rates(tickets), &rates(each)));
    let kernel =
        found.iter().find(|one| one.target != "undercroft" && one.mode == Mode::FsyncBeforeClose);
    let beside =
        each.zip(kernel).and_then(|(own, kernel)| Estimate::of_ratios(&rates(own), &rates(kernel)));
    let shared = tickets.and_then(|one| one.log_writes_per_fsync).filter(|writes| *writes > 0.0);
    let named = |name: &str, figure: Option<Estimate>| -> Vec<(String, Estimate)> {
        figure.map(|figure| (name.to_owned(), figure)).into_iter().collect()
    };
    Chapter {
        id: "fsync",
        title: "Asynchronous fsync",
        question: "A program makes many small files durable. How much faster is it when it hands over all fsyncs and \
             waits at the end, instead of one by one?",
        source: "Dave Chinner, \u{201c}xfs: wire up aio_fsync method\u{201d}, linux-fsdevel, June 2014: fs_mark, 800,000 files of \
             4 KiB an iteration, asynchronous fsync of all of them; 16 CPUs, 16 GB.",
        published: published(),
        findings: vec![
            Finding {
                claim: "Tickets make at least three times as many files durable as one fsync after the other, by one thread"
                    .to_owned(),
                rule: Rule::AtLeast(3.0),
                unit: TIMES,
                published: String::new(),
                measured: named("tickets beside fsync before close", ratio),
            },
            Finding {
                claim: "One write of the journal serves many of them".to_owned(),
                rule: Rule::AtLeast(10.0),
                unit: "fsyncs",
                published: String::new(),
                measured: named("fsyncs a write of the journal", shared.map(|writes| Estimate::exact(1.0 / writes))),
            },
            Finding {
                claim: "Iterations differ less than in the source: deviation over mean of files a second".to_owned(),
                rule: Rule::AtMost(spread.stddev / spread.mean),
                unit: OF_MEAN,
                published: format!("{:.2} of the iterations above", spread.stddev / spread.mean),
                measured: named(
                    "tickets",
                    tickets.and_then(|one| Estimate::of_variation(&rates(one))),
                ),
            },
            Finding {
                claim: "Even one by one it is as fast as the kernel's own file system, beside".to_owned(),
                rule: Rule::AtLeast(1.0),
                unit: TIMES,
                published: String::new(),
                measured: named("ours beside the kernel's", beside),
            },
        ],
        differs: "The source found that the drop in its third iteration came from memory running out, which makes the \
             kernel reclaim the pages of the files. There is no page cache of files here to be reclaimed.",
        sections,
    }
}

fn published() -> Blocks {
    let mut table =
        Table::new().numbers("Count").numbers("Size").numbers("Files/sec").numbers("App Overhead");
    for (count, rate, overhead) in ITERATIONS {
        table.row([
            count.to_string(),
            "4096".to_owned(),
            format!("{rate:.1}"),
            overhead.to_string(),
        ]);
    }
    let mut published = Blocks::default();
    published.table(table);
    published
}

/// The outcome with the fewest threads.
fn of<'a>(found: &[&'a FsyncOutcome], target: &str, mode: Mode) -> Option<&'a FsyncOutcome> {
    let wanted = found.iter().filter(|one| one.target == target && one.mode == mode);
    wanted.min_by_key(|one| one.threads).copied()
}

fn rates(of: &FsyncOutcome) -> Vec<f64> {
    of.iterations.iter().map(|one| one.files_per_second).collect()
}
