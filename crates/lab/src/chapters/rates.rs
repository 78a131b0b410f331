//! Rates without a published counterpart.

use super::select::{newest, outcomes};
use super::{Chapter, Finding};
use crate::blocks::Blocks;
use crate::outcome::Outcome;
use crate::outcome::meta::Operation;
use crate::record::Record;
use crate::statistics::{Estimate, Rule};

/// Empty files.
pub(super) fn empty_files(records: &[Record]) -> Chapter<'_> {
    let sections = newest(records, |of| matches!(of, Outcome::Meta(_)));
    let found = outcomes(&sections, Outcome::meta);
    let beside = |operation: Operation| {
        let rates = |ours: bool| {
            let one = found.iter().find(|one| (one.target == "undercroft") == ours)?;
            one.operations.iter().find(|speed| speed.operation == operation)
        };
        let ratio = Estimate::of_ratios(&rates(true)?.per_second, &rates(false)?.per_second)?;
        Some((operation.name().to_owned(), ratio))
    };
    Chapter {
        id: "empty-files",
        title: "Empty files",
        question: "Creating, looking at and deleting empty files is work on metadata alone. How fast is it without a \
             system call for each?",
        source: "",
        published: Blocks::default(),
        findings: vec![Finding {
            claim: "Each is at least as fast as in the kernel's own XFS, beside".to_owned(),
            rule: Rule::AtLeast(1.0),
            published: String::new(),
            measured: Operation::ALL.into_iter().filter_map(beside).collect(),
        }],
        differs: "Nothing was published of this. The kernel is compared with only where the report was made with --on.",
        sections,
    }
}

/// I/Os a second.
pub(super) fn drivers(records: &[Record]) -> Chapter<'_> {
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
            published: String::new(),
            measured: gain.map(|gain| ("null driver".to_owned(), gain)).into_iter().collect(),
        }],
        differs: "Nothing was published of this in the sources of the laboratory.",
        sections,
    }
}
