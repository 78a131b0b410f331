//! `cargo xtask bench mount`: our mount beside a null server on the same library, the kernel's XFS on
//! a loop device, fuse2fs, and libfuse's passthrough example over the kernel's XFS.
//!
//! All mounts take turns at each row, round after round; what counts is the median of the rounds, and
//! the goals are ratios of medians. Every turn works in a fresh directory.

mod goals;
mod groups;
mod mounts;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::comparison::{Comparison, median};
use super::source::Source;
use super::turns::in_turn;
use super::working_directory;
use crate::{newest, shell, system, workspace};
use goals::GOALS;
use groups::{Group, Row};
use mounts::{Mounted, Peer};

/// Measure `undercroft mount`.
#[derive(Args)]
pub(crate) struct MountArguments {
    /// Number of rounds
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only these groups of rows
    #[arg(long, value_name = "GROUP")]
    only: Vec<Group>,
    /// Only these mounts
    #[arg(long, value_name = "MOUNT")]
    mount: Vec<Peer>,
    /// Size of the volumes in MiB
    #[arg(long, default_value_t = 4096)]
    size: u64,
    /// Do everything on this processor: what the work costs, whichever processors are woken for it
    #[arg(long, value_name = "NUMBER")]
    processor: Option<usize>,
    /// Where images are written
    #[arg(long)]
    work: Option<PathBuf>,
}

impl MountArguments {
    /// Whether some of the rows were asked for.
    pub(super) fn is_part(&self) -> bool {
        !(self.only.is_empty() && self.mount.is_empty())
    }
}

/// Runs the benchmark.
pub(super) fn run(arguments: &MountArguments) -> Result<Vec<Comparison>> {
    ensure!(arguments.runs > 0, "--runs must be at least 1");
    ensure!(rustix::process::geteuid().is_root(), "volumes are mounted; run as root");
    ensure!(std::path::Path::new("/dev/fuse").exists(), "no /dev/fuse; load the module `fuse`");
    system::install(system::FOR_BENCHMARKS)?;
    system::install(system::FOR_MOUNT_BENCHMARKS)?;
    newest::install(false)?;
    let groups = chosen(&arguments.only);
    let peers = chosen(&arguments.mount);
    let source = groups.contains(&Group::Tree).then(Source::linux).transpose()?;
    build()?;
    let work = working_directory(arguments.work.as_ref())?;
    let work = fs::canonicalize(&work).with_context(|| format!("no {}", work.display()))?;

    if let Some(processor) = arguments.processor {
        stay_on(processor)?;
    }
    let mut measured = BTreeMap::<Row, Comparison>::new();
    for group in groups {
        let peers: Vec<Peer> = peers.iter().copied().filter(|peer| group.suits(*peer)).collect();
        for round in 1..=arguments.runs {
            in_turn(peers.len(), |turn| {
                let peer = &peers[turn];
                let mut mounted = Mounted::new(*peer, &work, arguments.size)?;
                let values = group
                    .measure(&mut mounted, source.as_ref())
                    .with_context(|| format!("{} on {}", group.name(), peer.name()))?;
                mounted.unmount()?;
                for (row, value) in values {
                    eprintln!("round {round}: {}, {row}: {value:.2}", peer.name());
                    let names = peers.iter().map(|peer| peer.name());
                    let comparison = measured
                        .entry(row)
                        .or_insert_with(|| Comparison::new(row.to_string(), row.unit(), names));
                    comparison.programs[turn].values.push(value);
                }
                Ok(())
            })?;
        }
    }
    print_goals(&measured);
    Ok(measured.into_values().collect())
}

/// Says which goals were met.
fn print_goals(measured: &BTreeMap<Row, Comparison>) {
    let median_of = |row: Row, peer: Peer| {
        let programs = &measured.get(&row)?.programs;
        let program = programs.iter().find(|program| program.name == peer.name())?;
        Some(median(&program.values))
    };
    println!("| row | times as fast as | goal | ratio | |\n|---|---|---|---|---|");
    for outcome in GOALS.iter().filter_map(|goal| goal.outcome(median_of)) {
        println!("{outcome}");
    }
    println!();
}

/// Those that were asked for, in order; or all.
fn chosen<T: ValueEnum + PartialEq>(only: &[T]) -> Vec<T> {
    let all = T::value_variants().iter().cloned();
    all.filter(|one| only.is_empty() || only.contains(one)).collect()
}

/// Keeps this process on a processor, and the servers and programs that it starts.
fn stay_on(processor: usize) -> Result<()> {
    ensure!(processor < CpuSet::MAX_CPU, "there is no processor {processor}");
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).with_context(|| format!("cannot stay on processor {processor}"))
}

/// Our command, and the null server.
fn build() -> Result<()> {
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    let mut null = workspace::cargo();
    null.args(["build", "--release", "--package", "undercroft-judges", "--example", "null_mount"]);
    shell::run(&mut null)
}
