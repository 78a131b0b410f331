//! A chapter of the report: an experiment, published beside measured.

use crate::outcome::Outcome;
use crate::record::Record;
use crate::report::blocks::Blocks;
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
    /// What its figures count.
    pub(crate) unit: &'static str,
    /// The published figure, in words; empty where there is none.
    pub(crate) published: String,
    /// Figures that the rule is about, each with a name.
    pub(crate) measured: Vec<(String, Estimate)>,
}

impl Finding {
    pub(crate) fn verdict(&self) -> Verdict {
        self.rule.judge_all(self.measured.iter().map(|(_, estimate)| estimate))
    }

    /// The rule in words, with what its figures count.
    pub(crate) fn rule_text(&self) -> String {
        format!("{} {}", self.rule, self.unit)
    }

    /// The figures in words, each with its name.
    pub(crate) fn figures(&self) -> impl Iterator<Item = String> {
        let figure = |(name, estimate): &(String, Estimate)| {
            format!("{name}: {}", estimate.in_unit(self.unit))
        };
        self.measured.iter().map(figure)
    }
}

/// How often as much something is as what it stands beside.
pub(crate) const TIMES: &str = "times";
/// A deviation over its mean.
pub(crate) const OF_MEAN: &str = "of the mean";
/// A share of I/Os.
pub(crate) const OF_ALL: &str = "of all";

/// The records that are wanted, of the newest session that has any: variants in it took turns.
pub(crate) fn newest(records: &[Record], wanted: impl Fn(&Outcome) -> bool) -> Vec<&[Record]> {
    let every = every(records, wanted);
    let Some(last) = every.last().map(|section| &section[0].session) else { return every };
    every.iter().copied().filter(|section| section[0].session == *last).collect()
}

/// The records that are wanted, in sections of neighbours of one session, the oldest first.
pub(crate) fn every(records: &[Record], wanted: impl Fn(&Outcome) -> bool) -> Vec<&[Record]> {
    sections(records, &wanted)
}

/// As [`every`]: one copy for all chapters.
fn sections<'a>(records: &'a [Record], wanted: &dyn Fn(&Outcome) -> bool) -> Vec<&'a [Record]> {
    let alike =
        |a: &Record, b: &Record| a.session == b.session && wanted(&a.outcome) == wanted(&b.outcome);
    let sections = records.chunk_by(alike);
    let mut found: Vec<&[Record]> =
        sections.filter(|section| wanted(&section[0].outcome)).collect();
    found.sort_by_key(|section| section[0].session.started);
    found
}

/// Outcomes of these sections.
pub(crate) fn outcomes<'a, T>(
    sections: &[&'a [Record]],
    of: impl Fn(&'a Outcome) -> Option<&'a T>,
) -> Vec<&'a T> {
    sections.iter().flat_map(|section| section.iter()).filter_map(|one| of(&one.outcome)).collect()
}
