//! Rates of work on empty files, of which nothing was published.

use super::outcome::Operation;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::Blocks;
use crate::report::chapter::{Chapter, Finding, TIMES, newest, outcomes};
use crate::statistics::{Estimate, Rule};

/// Empty files.
pub(crate) fn chapter(records: &[Record]) -> Chapter<'_> {
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
            claim:
                "Each is at least as fast as in the kernel's own XFS, beside (measured with --on)"
                    .to_owned(),
            rule: Rule::AtLeast(1.0),
            unit: TIMES,
            published: String::new(),
            measured: Operation::ALL.into_iter().filter_map(beside).collect(),
        }],
        differs: "Nothing was published of this. The kernel is compared with only where the report was made with --on DIR, a directory of its XFS.",
        sections,
    }
}
