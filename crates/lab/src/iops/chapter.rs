//! I/Os a second, of which nothing was published.

use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::Blocks;
use crate::report::chapter::{Chapter, Finding, TIMES, newest, outcomes};
use crate::statistics::{Estimate, Rule};

/// I/Os a second.
pub(crate) fn chapter(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::Iops(_)));
    let found = outcomes(&sections, Outcome::iops);
    let rates = |driver: &str, batch: usize| {
        let one = found
            .iter()
            .find(|one| (one.driver.as_str(), one.threads, one.batch) == (driver, 1, batch));
        one.map(|one| &one.rate.iops_of_runs)
    };
    let largest = found.iter().filter(|one| one.driver == "null").map(|one| one.batch).max();
    let gain =
        largest.and_then(|batch| Estimate::of_ratios(rates("null", batch)?, rates("null", 1)?));
    Chapter {
        id: "iops",
        title: "I/Os a second",
        question: "With a driver that answers at once, what is left is the block layer: bio, plug, tag, dispatch, \
             completion. What does it cost, and what do batches save?",
        source: "",
        published: Blocks::default(),
        findings: vec![Finding {
            claim: "Batches make an I/O cheaper: the rate of the largest beside that of single I/Os, one thread".to_owned(),
            rule: Rule::AtLeast(1.0),
            unit: TIMES,
            published: String::new(),
            measured: gain.map(|gain| ("null driver".to_owned(), gain)).into_iter().collect(),
        }],
        differs: "Nothing was published of this in the sources of the laboratory.",
        sections,
    }
}
