//! Chapters of the report: an experiment each, published beside measured.

mod affinity;
mod alloc;
mod crowd;
mod depth;
mod fsync;
mod mount;
mod rates;
mod select;
mod unplug;

use crate::blocks::Blocks;
use crate::record::Record;
use crate::statistics::{Estimate, Rule, Verdict};

/// One experiment.
pub(crate) struct Chapter<'a> {
    /// Names it in links.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Two sentences that a student understands.
    pub(crate) question: &'static str,
    /// Author, place, year and machine of the source; empty where there is none.
    pub(crate) source: &'static str,
    /// Figures of the source.
    pub(crate) published: Blocks,
    /// What should be alike, the one for the overview first.
    pub(crate) findings: Vec<Finding>,
    /// What differs from the source, and why.
    pub(crate) differs: &'static str,
    /// Records that it rests on, a session each.
    pub(crate) sections: Vec<&'a [Record]>,
}

/// A claim, the rule that decides on it, and figures.
pub(crate) struct Finding {
    pub(crate) claim: String,
    pub(crate) rule: Rule,
    /// The published figure, in words; empty where there is none.
    pub(crate) published: String,
    /// Figures that the rule is about, each with a name.
    pub(crate) measured: Vec<(String, Estimate)>,
}

impl Finding {
    pub(crate) fn verdict(&self) -> Verdict {
        self.rule.judge_all(self.measured.iter().map(|(_, estimate)| estimate))
    }
}

/// All chapters on `records`, in the order of the report.
pub(crate) fn all(records: &[Record]) -> Vec<Chapter<'_>> {
    vec![
        depth::own(records),
        depth::shared(records),
        crowd::herd(records),
        crowd::variability(records),
        crowd::fairness(records),
        unplug::chapter(records),
        affinity::large(records),
        affinity::cached(records),
        mount::chapter(records),
        alloc::clean(records),
        alloc::random(records),
        alloc::single(records),
        fsync::chapter(records),
        rates::empty_files(records),
        rates::drivers(records),
    ]
}
