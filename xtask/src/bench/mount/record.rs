//! The outcome of a run: a record for machines, and the tables for people.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::goals::{GOALS, Outcome};
use super::groups::Row;
use super::mounts::Peer;
use crate::bench::record::{Machine, commit, median, now};

/// A whole run.
#[derive(Serialize)]
pub(super) struct Record {
    date: String,
    commit: String,
    machine: Machine,
    peers: Vec<Peer>,
    values: Vec<Values>,
    goals: Vec<Outcome>,
}

/// What one mount did in one row.
#[derive(Serialize)]
struct Values {
    row: Row,
    peer: Peer,
    /// In the order of the rounds.
    values: Vec<f64>,
}

impl Record {
    pub(super) fn new(peers: Vec<Peer>) -> Self {
        let machine = Machine::here();
        Self {
            date: now(),
            commit: commit(),
            machine,
            peers,
            values: Vec::new(),
            goals: Vec::new(),
        }
    }

    /// Adds the value of one round.
    pub(super) fn add(&mut self, row: Row, peer: Peer, value: f64) {
        match self.values.iter_mut().find(|values| (values.row, values.peer) == (row, peer)) {
            Some(values) => values.values.push(value),
            None => self.values.push(Values { row, peer, values: vec![value] }),
        }
    }

    /// Compares with the goals, after the last round.
    pub(super) fn finish(&mut self) {
        let medians: BTreeMap<(Row, Peer), f64> = self
            .values
            .iter()
            .map(|values| ((values.row, values.peer), median(&values.values)))
            .collect();
        let median = |row, peer| medians.get(&(row, peer)).copied();
        self.goals = GOALS.iter().filter_map(|goal| goal.outcome(median)).collect();
    }
}

impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, commit, machine, peers, values, goals } = self;
        writeln!(formatter, "\n{commit}, {date}, {machine}; medians\n")?;
        let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        writeln!(formatter, "| | {} |", names.join(" | "))?;
        writeln!(formatter, "|---|{}", "---|".repeat(names.len()))?;
        let mut rows: Vec<Row> = values.iter().map(|values| values.row).collect();
        rows.sort();
        rows.dedup();
        for row in rows {
            write!(formatter, "| {row} |")?;
            for peer in peers {
                let found = values.iter().find(|found| (found.row, found.peer) == (row, *peer));
                match found.map(|found| median(&found.values)) {
                    Some(value) if value < 100.0 => write!(formatter, " {value:.2} |")?,
                    Some(value) => write!(formatter, " {value:.0} |")?,
                    None => write!(formatter, " - |")?,
                }
            }
            writeln!(formatter)?;
        }
        if !goals.is_empty() {
            writeln!(
                formatter,
                "\n| row | times as fast as | goal | ratio | |\n|---|---|---|---|---|"
            )?;
        }
        goals.iter().try_for_each(|goal| writeln!(formatter, "{goal}"))
    }
}
