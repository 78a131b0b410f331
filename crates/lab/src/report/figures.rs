//! Figures of records: what is shown of each experiment.

use crate::outcome::Outcome;
use crate::record::{Record, sections};
use crate::report::plot::{Figure, Panels, below_each_other};
use crate::{affinity, age, alloc, calibration, fsync, iops, meta, mount, tags, unplug};

/// A picture of `records`, one figure for each experiment of each session below the other.
#[must_use]
pub fn plot(records: &[Record]) -> String {
    below_each_other(sections(records).map(figure_of))
}

/// The figure of one experiment in one session.
pub(crate) fn figure_of(section: &[Record]) -> Figure {
    let mut panels = Panels::default();
    for record in section {
        add(&record.outcome, &mut panels);
    }
    Figure { title: section[0].outcome.title(), panels: panels.into_list() }
}

fn add(outcome: &Outcome, panels: &mut Panels) {
    match outcome {
        Outcome::TagsDepth(of) | Outcome::TagsShared(of) => tags::figure::add_depth(of, panels),
        Outcome::TagsHerd(of) | Outcome::TagsVariability(of) => {
            tags::figure::add_policy(of, panels);
        }
        Outcome::TagsFairness(of) => tags::figure::add_reader(of, panels),
        Outcome::Iops(of) => iops::figure::add(of, panels),
        Outcome::Affinity(of) => affinity::figure::add(of, panels),
        Outcome::Fsync(of) => fsync::figure::add(of, panels),
        Outcome::Meta(of) => meta::figure::add(of, panels),
        Outcome::Mount(of) => mount::figure::add(of, panels),
        Outcome::Unplug(of) => unplug::figure::add(of, panels),
        Outcome::Age(of) => age::figure::add(of, panels),
        Outcome::Alloc(of) => alloc::figure::add_distances(of, panels),
        Outcome::AllocSearch(of) => alloc::figure::add_search(of, panels),
        Outcome::AllocGrowth(of) => alloc::figure::add_growth(of, panels),
        Outcome::Calibration(of) => calibration::figure::add(of, panels),
    }
}
