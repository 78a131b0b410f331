//! The outcome of a run: a record for machines, from which the table for people is made.

use std::fmt;
use std::fs;
use std::process::Command;

use anyhow::Result;
use serde::Serialize;
use undercroft_judges::Xfsprogs;

use super::peers::Competitor;
use super::source::{Input, Source};
use crate::{shell, workspace};

/// One competitor's times.
#[derive(Serialize)]
pub(super) struct Row {
    name: &'static str,
    input: Input,
    ours: bool,
    floor: bool,
    /// In the order of the rounds.
    seconds: Vec<f64>,
    median: f64,
}

impl Row {
    pub(super) fn new(competitor: &Competitor, seconds: Vec<f64>) -> Self {
        let &Competitor { name, input, ours, floor, .. } = competitor;
        Self { name, input, ours, floor, median: median(&seconds), seconds }
    }
}

/// The middle of the values; of two middle ones, their mean. Zero when there is none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// A whole run.
#[derive(Serialize)]
pub(super) struct Record {
    date: String,
    source: String,
    tar_bytes: u64,
    machine: Machine,
    versions: Versions,
    rows: Vec<Row>,
    /// What our own command said about its last turn.
    summary: Option<serde_json::Value>,
}

/// Where the run was.
#[derive(Serialize)]
pub(super) struct Machine {
    processor: String,
    processors: usize,
    memory_bytes: u64,
    kernel: String,
}

#[derive(Serialize)]
struct Versions {
    commit: String,
    distribution_xfsprogs: String,
    newest_xfsprogs: String,
    mke2fs: String,
    tar: String,
}

impl Record {
    pub(super) fn new(
        source: &Source,
        newest: &Xfsprogs,
        rows: Vec<Row>,
        summary: Option<serde_json::Value>,
    ) -> Result<Self> {
        let version = |tools: &Xfsprogs| format!("{}.{}", tools.version().0, tools.version().1);
        Ok(Self {
            date: now(),
            source: source.name.clone(),
            tar_bytes: source.tar_bytes,
            machine: Machine::here(),
            versions: Versions {
                commit: commit(),
                distribution_xfsprogs: version(&Xfsprogs::distribution()?),
                newest_xfsprogs: version(newest),
                mke2fs: first_line(Command::new("sh").args(["-c", "mke2fs -V 2>&1"])),
                tar: first_line(Command::new("tar").arg("--version")),
            },
            rows,
            summary,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, processors, kernel, .. } = self;
        write!(formatter, "{processors} x {processor}, Linux {kernel}")
    }
}

/// The moment, for a record.
pub(super) fn now() -> String {
    first_line(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]))
}

/// The version of the workspace.
pub(super) fn commit() -> String {
    let mut git = Command::new("git");
    first_line(git.current_dir(workspace::root()).args(["describe", "--always", "--dirty"]))
}

impl Machine {
    pub(super) fn here() -> Self {
        let field = |file: &str, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':'))
                .map_or_else(String::new, |(_, value)| value.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal");
        let kibibytes = memory.trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            memory_bytes: kibibytes * 1024,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        }
    }
}

/// What a program says first, or nothing when it cannot say it: no reason to lose a run.
fn first_line(command: &mut Command) -> String {
    let text = shell::output(command).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, machine, versions, rows, date, .. } = self;
        writeln!(
            formatter,
            "\n{source}, {} rounds, {date}, {machine}, xfsprogs {} and {}\n",
            rows.first().map_or(0, |row| row.seconds.len()),
            versions.distribution_xfsprogs,
            versions.newest_xfsprogs,
        )?;
        let find = |wanted: &dyn Fn(&Row) -> bool| {
            rows.iter().find(|row| wanted(row)).map(|row| row.median)
        };
        let ratio = |above: Option<f64>, below: Option<f64>| match (above, below) {
            (Some(above), Some(below)) if below > 0.0 => format!("{:.2}", above / below),
            _ => "-".to_owned(),
        };
        let floor = find(&|row| row.floor);
        let from_tar = find(&|row| row.ours && row.input == Input::Tar);
        let from_directory = find(&|row| row.ours && row.input == Input::Directory);
        writeln!(
            formatter,
            "| tool | median s | least s | most s | / floor | / ours from tar | / ours from directory |"
        )?;
        writeln!(formatter, "|---|---|---|---|---|---|---|")?;
        for row in rows {
            let least = row.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            let most = row.seconds.iter().copied().fold(0.0, f64::max);
            writeln!(
                formatter,
                "| {} | {:.2} | {least:.2} | {most:.2} | {} | {} | {} |",
                row.name,
                row.median,
                ratio(Some(row.median), floor),
                ratio(Some(row.median), from_tar),
                ratio(Some(row.median), from_directory),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let close = |values: &[f64], expected: f64| (median(values) - expected).abs() < 1e-9;
        assert!(close(&[3.0, 1.0, 2.0], 2.0));
        assert!(close(&[4.0, 1.0, 2.0, 3.0], 2.5));
        assert!(close(&[], 0.0));
    }
}
