//! Runs that are kept: docs/measurements.json, and the page docs/measurements.md that is made of it.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use undercroft_judges::Xfsprogs;

use super::comparison::{Comparison, tables};
use crate::{shell, workspace};

const INTRODUCTION: &str = "\
# Measurements against other tools

Made by `cargo xtask bench all --record` of the records in [measurements.json](measurements.json): do not
edit. A number is the median of the rounds. In brackets, how many times as good ours is: the median of
the ratios of each round, in which the programs take turns. Experiments on the parts are in
docs/report/README.md, the lessons in docs/decisions/README.md.
";

/// The outcome of one benchmark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Chapter {
    title: String,
    /// The work that is measured, in sentences.
    about: String,
    /// The command that repeats it.
    command: String,
    date: String,
    commit: String,
    machine: Machine,
    /// Versions, of the system and the newest.
    xfsprogs: [String; 2],
    comparisons: Vec<Comparison>,
}

/// The machine of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Machine {
    processor: String,
    processors: usize,
    memory_bytes: u64,
    kernel: String,
}

impl Chapter {
    /// A run that ended now on this machine. `name` is that of the benchmark.
    pub(super) fn new(
        name: &str,
        title: &str,
        about: &str,
        comparisons: Vec<Comparison>,
    ) -> Result<Self> {
        let version = |tools: &Xfsprogs| format!("{}.{}", tools.version().0, tools.version().1);
        Ok(Self {
            title: title.to_owned(),
            about: about.to_owned(),
            command: format!("cargo xtask bench {name}"),
            date: first_line(Command::new("date").args(["-u", "+%Y-%m-%d"])),
            commit: commit(),
            machine: Machine::here(),
            xfsprogs: [version(&Xfsprogs::distribution()?), version(&Xfsprogs::newest()?)],
            comparisons,
        })
    }
}

/// The commit that was measured, and whether there were changes besides the records themselves.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        first_line(Command::new("git").current_dir(workspace::root()).args(arguments))
    };
    let commit = git(&["describe", "--always"]);
    let changed = git(&["status", "--porcelain", "--", ".", ":!docs/measurements.*"]);
    if changed.is_empty() { commit } else { format!("{commit}-dirty") }
}

impl fmt::Display for Chapter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { title, about, command, date, commit, machine, xfsprogs, comparisons } = self;
        let Machine { processor, processors, memory_bytes, kernel } = machine;
        let [system, newest] = xfsprogs;
        writeln!(formatter, "## {title}\n\n{about}\n\n{}", tables(comparisons))?;
        writeln!(
            formatter,
            "`{command}`: {date}, {commit}, {processors} x {processor}, {} GiB, Linux {kernel}, \
             xfsprogs {system} and {newest}",
            memory_bytes >> 30
        )
    }
}

impl Machine {
    fn here() -> Self {
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

/// Keeps a chapter in the place of the one with its title.
pub(super) fn keep(chapter: Chapter) -> Result<()> {
    let (records, page) = paths();
    let mut chapters = if records.exists() { read()? } else { Vec::new() };
    match chapters.iter_mut().find(|old| old.title == chapter.title) {
        Some(old) => *old = chapter,
        None => chapters.push(chapter),
    }
    fs::write(&records, serde_json::to_string_pretty(&chapters)? + "\n")
        .with_context(|| format!("cannot write {}", records.display()))?;
    fs::write(&page, text(&chapters)).with_context(|| format!("cannot write {}", page.display()))
}

/// The records, and the page.
fn paths() -> (PathBuf, PathBuf) {
    let docs = workspace::root().join("docs");
    (docs.join("measurements.json"), docs.join("measurements.md"))
}

fn read() -> Result<Vec<Chapter>> {
    let (records, _) = paths();
    let text = fs::read_to_string(&records)
        .with_context(|| format!("cannot read {}", records.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} has no records", records.display()))
}

fn text(chapters: &[Chapter]) -> String {
    chapters.iter().fold(INTRODUCTION.to_owned(), |text, chapter| format!("{text}\n{chapter}"))
}

/// The first words of a program, or nothing when it has none: no reason to lose a run.
fn first_line(command: &mut Command) -> String {
    let text = shell::output(command).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_records() {
        let page = fs::read_to_string(paths().1).unwrap();
        assert_eq!(page, text(&read().unwrap()), "cargo xtask bench NAME --record");
    }
}
