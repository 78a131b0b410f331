//! `cargo xtask bench nbd`: our server beside nbdkit and qemu-nbd on the same file, and beside nbdkit
//! with memory, with fio as the client; our client beside fio at nbdkit; whole commands beside the same
//! on a file. All at sockets of this machine.
//!
//! The competitors take turns in every round. What counts is the median of the ratios of a round.

mod commands;
mod load;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use undercroft_judges::nbd::NbdServer;

use super::comparison::{Comparison, Unit, tables};
use super::turns::in_turn;
use super::working_directory;
use crate::{shell, system, workspace};
use load::{Found, Load};

/// Bytes of the file.
const BYTES: u64 = 1 << 30;
/// Connections, and requests in flight on all of them.
const LOADS: [(u64, u64); 6] = [(1, 1), (1, 32), (1, 256), (4, 4), (4, 32), (4, 256)];
/// Names of the loads, what fio calls them, and bytes of a request.
const PATTERNS: [(&str, &str, u64); 4] = [
    ("4 KiB random reads", "randread", 4 << 10),
    ("4 KiB random writes", "randwrite", 4 << 10),
    ("256 KiB reads in order", "read", 256 << 10),
    ("256 KiB writes in order", "write", 256 << 10),
];

/// Compare servers and clients of network disks.
#[derive(Args)]
pub(crate) struct NbdArguments {
    /// Number of rounds
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of one turn
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Where files are; without it those of commands are below the target directory, others in memory
    #[arg(long)]
    work: Option<PathBuf>,
    /// Only this comparison; may be given several times
    #[arg(long, value_name = "COMPARISON")]
    only: Vec<Compared>,
    /// Only loads whose name begins so, such as "4 KiB random reads"; may be given several times
    #[arg(long, value_name = "NAME")]
    load: Vec<String>,
}

impl NbdArguments {
    /// Whether some of the rows were asked for.
    pub(super) fn is_part(&self) -> bool {
        !(self.only.is_empty() && self.load.is_empty())
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compared {
    /// Servers of a file
    File,
    /// Servers of memory
    Memory,
    /// Clients of nbdkit with memory: random places only
    Client,
    /// `build`, `extract` and `ls -lR` on network disks, beside a file; takes no load
    Commands,
}

/// A competitor.
struct Competitor {
    name: &'static str,
    server: NbdServer,
    export: &'static str,
    client: Client,
}

/// Who brings the load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    /// fio, and the cost is that of the server.
    Fio,
    /// fio, and the cost is its own.
    FioItself,
    Ours,
}

/// Runs the benchmark.
pub(super) fn nbd(arguments: &NbdArguments) -> Result<Vec<Comparison>> {
    ensure!(arguments.runs > 0 && arguments.seconds > 0, "--runs and --seconds must be at least 1");
    system::install(system::FOR_TESTS)?;
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    let mut examples = workspace::cargo();
    examples.args(["build", "--release", "--package", "undercroft-nbd", "--examples"]);
    shell::run(&mut examples)?;
    let memory = PathBuf::from("/dev/shm");
    let home = tempfile::tempdir_in(working_directory(arguments.work.as_ref().or(Some(&memory)))?)?;
    let file = home.path().join("disk");
    let is_wanted = |one: &Compared| arguments.only.is_empty() || arguments.only.contains(one);
    let mut all = Vec::new();
    for compared in Compared::value_variants().iter().copied().filter(is_wanted) {
        if compared == Compared::Commands {
            // On a disk, where people have their images.
            let home = tempfile::tempdir_in(working_directory(arguments.work.as_ref())?)?;
            all.extend(commands::commands(home.path(), arguments.runs)?);
            continue;
        }
        // The commands have files of their own.
        if !file.exists() {
            fill(&file)?;
        }
        compare(compared, &file, arguments, &mut all)?;
    }
    Ok(all)
}

/// Has all competitors take turns with each load: requests a second, and the CPU time of one.
fn compare(
    compared: Compared,
    file: &Path,
    arguments: &NbdArguments,
    all: &mut Vec<Comparison>,
) -> Result<()> {
    let competitors = competitors(compared, file)?;
    for (name, pattern, block) in PATTERNS {
        let is_wanted =
            arguments.load.is_empty() || arguments.load.iter().any(|one| name.starts_with(&**one));
        // Our client has no load in order, which both would do from memory of the server alike.
        if !is_wanted || (compared == Compared::Client && !pattern.starts_with("rand")) {
            continue;
        }
        for (connections, flight) in LOADS {
            let load = Load { pattern, block, connections, flight };
            let work = format!("{name}, {connections} connections, {flight} in flight");
            let new = |unit| {
                let names = competitors.iter().map(|competitor| competitor.name);
                Comparison::new(work.as_str(), unit, names)
            };
            let (mut rates, mut costs) = (new(Unit::PerSecond), new(Unit::CpuMicroseconds));
            for _ in 0..arguments.runs {
                let turns = in_turn(competitors.len(), |competitor| {
                    competitors[competitor].turn(&load, arguments.seconds)
                })?;
                rates.add(turns.iter().map(|(rate, _)| *rate));
                costs.add(turns.iter().map(|(_, cost)| *cost));
            }
            eprint!("{}", tables(&[rates.clone(), costs.clone()]));
            all.extend([rates, costs]);
        }
    }
    Ok(())
}

/// Bytes without holes, so that servers have nothing to allocate.
fn fill(file: &Path) -> Result<()> {
    let mut bytes = std::io::repeat(0x5a).take(BYTES);
    let mut out =
        File::create(file).with_context(|| format!("cannot create {}", file.display()))?;
    std::io::copy(&mut bytes, &mut out)?;
    Ok(())
}

/// The competitors; ours comes first.
fn competitors(compared: Compared, file: &Path) -> Result<Vec<Competitor>> {
    let path = file.display().to_string();
    let competitor = |name, server, export, client| Competitor { name, server, export, client };
    let memory = || -> Result<NbdServer> {
        let server = NbdServer::nbdkit(&["memory", &BYTES.to_string()])?;
        copy(&path, &server.uri("", &[]))?;
        Ok(server)
    };
    Ok(match compared {
        Compared::File => {
            let program = workspace::target("release/undercroft");
            let ours = NbdServer::undercroft(&program, &["--name", "disk", &path])?;
            let qemu = NbdServer::qemu(&["--format=raw", &path])?;
            vec![
                competitor("undercroft", ours, "disk", Client::Fio),
                competitor("nbdkit file", NbdServer::nbdkit(&["file", &path])?, "", Client::Fio),
                competitor("qemu-nbd", qemu, "disk", Client::Fio),
            ]
        }
        Compared::Memory => {
            let program = workspace::target("release/examples/memory_server");
            let ours = NbdServer::at_socket(&program, &[BYTES.to_string()])?;
            copy(&path, &ours.uri("disk", &[]))?;
            vec![
                competitor("undercroft, memory", ours, "disk", Client::Fio),
                competitor("nbdkit memory", memory()?, "", Client::Fio),
            ]
        }
        Compared::Client => vec![
            competitor("our client", memory()?, "", Client::Ours),
            competitor("fio", memory()?, "", Client::FioItself),
        ],
        // They bring no load.
        Compared::Commands => Vec::new(),
    })
}

/// Gives a server of memory its contents.
fn copy(file: &str, uri: &str) -> Result<()> {
    shell::run(Command::new("nbdcopy").args([file, uri]))
}

impl Competitor {
    /// Requests a second, and microseconds for one of the CPU of the server, or of the client if
    /// those are compared.
    fn turn(&self, load: &Load, seconds: u64) -> Result<(f64, f64)> {
        let uri = self.server.uri(self.export, &[]);
        let before = self.server.cpu_seconds()?;
        let Found { rate, count, cost } = match self.client {
            Client::Fio | Client::FioItself => load.by_fio(&uri, seconds)?,
            Client::Ours => load.by_client(&uri, seconds)?,
        };
        let servers = (self.server.cpu_seconds()? - before) * 1e6 / count;
        Ok((rate, if self.client == Client::Fio { servers } else { cost }))
    }
}
