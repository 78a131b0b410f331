//! Records that a chapter is about.

use crate::outcome::Outcome;
use crate::record::Record;

/// The records that are wanted, of the newest session that has any: variants in it took turns.
pub(super) fn newest(records: &[Record], wanted: impl Fn(&Outcome) -> bool) -> Vec<&[Record]> {
    let every = every(records, wanted);
    let Some(last) = every.last().map(|section| &section[0].session) else { return every };
    every.iter().copied().filter(|section| section[0].session == *last).collect()
}

/// The records that are wanted, in sections of neighbours of one session, the oldest first.
pub(super) fn every(records: &[Record], wanted: impl Fn(&Outcome) -> bool) -> Vec<&[Record]> {
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
pub(super) fn outcomes<'a, T>(
    sections: &[&'a [Record]],
    of: impl Fn(&'a Outcome) -> Option<&'a T>,
) -> Vec<&'a T> {
    sections.iter().flat_map(|section| section.iter()).filter_map(|one| of(&one.outcome)).collect()
}
