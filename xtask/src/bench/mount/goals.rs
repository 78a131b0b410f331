//! The goals of the mount: ratios of medians.

use std::fmt;

use super::groups::Row;
use super::mounts::Peer;
use crate::bench::comparison::Unit;

/// In one row, ours must be at least so many times another.
pub(super) struct Goal {
    row: Row,
    other: Peer,
    least: f64,
}

const fn goal(row: Row, other: Peer, least: f64) -> Goal {
    Goal { row, other, least }
}

/// A ratio is of speeds, also where the row is in seconds. "As fast as" has a twentieth of slack, for
/// the noise of medians.
pub(super) const GOALS: [Goal; 25] = [
    goal(Row::Create, Peer::Null, 0.8),
    goal(Row::Create, Peer::Fuse2fs, 3.0),
    goal(Row::Rename, Peer::Null, 0.8),
    goal(Row::Rename, Peer::Fuse2fs, 3.0),
    goal(Row::Unlink, Peer::Null, 0.8),
    goal(Row::Unlink, Peer::Fuse2fs, 3.0),
    goal(Row::Mkdir, Peer::Null, 0.8),
    goal(Row::Mkdir, Peer::Fuse2fs, 3.0),
    goal(Row::LargeCreate, Peer::Null, 0.8),
    goal(Row::LargeCreate, Peer::Fuse2fs, 15.0),
    goal(Row::LargeRename, Peer::Null, 0.8),
    goal(Row::LargeRename, Peer::Fuse2fs, 15.0),
    goal(Row::LargeUnlink, Peer::Null, 0.8),
    goal(Row::LargeUnlink, Peer::Fuse2fs, 15.0),
    goal(Row::LargeMkdir, Peer::Null, 0.8),
    goal(Row::LargeMkdir, Peer::Fuse2fs, 15.0),
    goal(Row::StatCached, Peer::Kernel, 0.95),
    goal(Row::Open, Peer::Kernel, 0.95),
    goal(Row::Find, Peer::Kernel, 0.3),
    goal(Row::Untar, Peer::Kernel, 0.4),
    goal(Row::Untar, Peer::Fuse2fs, 3.0),
    goal(Row::ReadCached, Peer::Null, 0.8),
    goal(Row::ReadDirect, Peer::Null, 0.8),
    goal(Row::Write, Peer::Kernel, 0.8),
    goal(Row::Fsync16, Peer::Kernel, 0.95),
];

/// A goal, and what came of it.
pub(super) struct Outcome {
    row: Row,
    other: Peer,
    least: f64,
    ratio: f64,
    met: bool,
}

impl Goal {
    /// What came of it; `median` gives that of a row and a mount, if both were measured.
    pub(super) fn outcome(&self, median: impl Fn(Row, Peer) -> Option<f64>) -> Option<Outcome> {
        let &Self { row, other, least } = self;
        let (ours, others) = (median(row, Peer::Ours)?, median(row, other)?);
        let ratio = if row.unit() == Unit::Seconds { others / ours } else { ours / others };
        Some(Outcome { row, other, least, ratio, met: ratio >= least })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, other, least, ratio, met } = self;
        let met = if *met { "met" } else { "not met" };
        write!(formatter, "| {row} | {} | {least} | {ratio:.2} | {met} |", other.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_speeds() {
        let median = |values: [f64; 2]| {
            move |_, peer| Some(if peer == Peer::Ours { values[0] } else { values[1] })
        };
        let rate = goal(Row::Create, Peer::Null, 0.8).outcome(median([90.0, 100.0])).unwrap();
        assert!(rate.met && (rate.ratio - 0.9).abs() < 1e-9);
        let time = goal(Row::Untar, Peer::Kernel, 0.4).outcome(median([30.0, 10.0])).unwrap();
        assert!(!time.met && (time.ratio - 1.0 / 3.0).abs() < 1e-9);
        assert!(goal(Row::Untar, Peer::Kernel, 0.4).outcome(|_, _| None).is_none());
    }
}
