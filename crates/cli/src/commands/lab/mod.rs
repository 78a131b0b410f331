//! `undercroft lab`: experiments, and reports from their records.

mod affinity;
mod age;
mod alloc;
mod compare;
mod fsync;
mod iops;
mod meta;
mod mount;
mod plan;
mod plot;
mod report;
mod runner;
mod table;
mod tags;
mod unplug;

use crate::report::Outcome;
use anyhow::Result;
use clap::Subcommand;
use std::io::Write;

/// Repeat classic experiments on storage stacks.
///
/// Each experiment runs one workload on several variants of a mechanism, in turn, on this machine,
/// and prints a table in the shape of the published one, to be held beside it. With --json it
/// prints records instead: one JSON object a line, each with the machine, the version, the seed and
/// the command. `undercroft lab table` makes the same table from a file of records at any time.
///
/// Figures need a quiet machine. Compare variants within one run, not between runs.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Tags(tags::Args),
    Iops(iops::Args),
    Unplug(unplug::Args),
    Affinity(affinity::Args),
    Fsync(fsync::Args),
    Meta(meta::Args),
    Mount(mount::Args),
    Age(age::Args),
    Alloc(alloc::Args),
    Report(report::Args),
    Compare(compare::Args),
    Table(table::Args),
    Plot(plot::Args),
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    run_command(&args.command, out)
}

fn run_command(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Tags(args) => tags::run(args, out),
        Command::Iops(args) => iops::run(args, out),
        Command::Unplug(args) => unplug::run(args, out),
        Command::Affinity(args) => affinity::run(args, out),
        Command::Fsync(args) => fsync::run(args, out),
        Command::Meta(args) => meta::run(args, out),
        Command::Mount(args) => mount::run(args, out),
        Command::Age(args) => age::run(args, out),
        Command::Alloc(args) => alloc::run(args, out),
        Command::Report(args) => report::run(args, out),
        Command::Compare(args) => compare::run(args, out),
        Command::Table(args) => table::run(args, out),
        Command::Plot(args) => plot::run(args, out),
    }
}
