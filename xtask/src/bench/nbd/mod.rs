//! `cargo xtask bench nbd`: our server beside nbdkit and qemu-nbd on the same file, and beside nbdkit
//! with memory, with fio as the client; our client beside fio at nbdkit. All at sockets of this
//! machine.
//!
//! The competitors take turns in every round. What counts is the median of the ratios of a round.

mod load;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use undercroft_judges::nbd::NbdServer;

use super::record::median;
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
    /// Where the file is; without it in memory
    #[arg(long)]
    work: Option<PathBuf>,
    /// Only this comparison; may be given several times
    #[arg(long, value_name = "COMPARISON")]
    only: Vec<Comparison>,
    /// Only loads whose name begins so, such as "4 KiB random reads"; may be given several times
    #[arg(long, value_name = "NAME")]
    load: Vec<String>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Comparison {
    /// Servers of a file
    File,
    /// Servers of memory
    Memory,
    /// Clients of nbdkit with memory: random places only
    Client,
}

/// A competitor and its measured turns with one load.
struct Turns {
    name: &'static str,
    server: NbdServer,
    export: &'static str,
    client: Client,
    /// Requests a second, and microseconds for one of the CPU of the server, or of the client if those
    /// are compared.
    rates: Vec<f64>,
    costs: Vec<f64>,
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
pub(crate) fn nbd(arguments: &NbdArguments) -> Result<()> {
    ensure!(arguments.runs > 0 && arguments.seconds > 0, "--runs and --seconds must be at least 1");
    system::install(system::FOR_TESTS)?;
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    let mut examples = workspace::cargo();
    examples.args(["build", "--release", "--package", "undercroft-nbd", "--examples"]);
    shell::run(&mut examples)?;
    let memory = PathBuf::from("/dev/shm");
    let home = tempfile::tempdir_in(working_directory(arguments.work.as_ref().or(Some(&memory)))?)?;
    let file = home.path().join("disk");
    fill(&file)?;
    for comparison in [Comparison::File, Comparison::Memory, Comparison::Client] {
        if arguments.only.is_empty() || arguments.only.contains(&comparison) {
            compare(comparison, &file, arguments)?;
        }
    }
    Ok(())
}

fn compare(comparison: Comparison, file: &Path, arguments: &NbdArguments) -> Result<()> {
    let mut all = competitors(comparison, file)?;
    print!("\n{comparison:?}\n{:<24}{:>12}{:>8}", "load", "connections", "flight");
    print!("{:>12}{:>10}", "ours/s", "us of CPU");
    all.iter().skip(1).for_each(|peer| print!("{:>14}", format!("/ {}", peer.name)));
    println!();
    for (name, pattern, block) in PATTERNS {
        let is_wanted =
            arguments.load.is_empty() || arguments.load.iter().any(|one| name.starts_with(&**one));
        // Our client has no load in order, which both would do from memory of the server alike.
        if !is_wanted || (comparison == Comparison::Client && !pattern.starts_with("rand")) {
            continue;
        }
        for (connections, flight) in LOADS {
            let load = Load { name, pattern, block, connections, flight };
            for _ in 0..arguments.runs {
                for turns in &mut all {
                    turns.take(&load, arguments.seconds)?;
                }
            }
            print_row(&load, &mut all);
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

/// The competitors in the order of their turns; ours comes first.
fn competitors(comparison: Comparison, file: &Path) -> Result<Vec<Turns>> {
    let path = file.display().to_string();
    let turns = |name, server, export, client| {
        let (rates, costs) = (Vec::new(), Vec::new());
        Turns { name, server, export, client, rates, costs }
    };
    let memory = || -> Result<NbdServer> {
        let server = NbdServer::nbdkit(&["memory", &BYTES.to_string()])?;
        copy(&path, &server.uri("", &[]))?;
        Ok(server)
    };
    Ok(match comparison {
        Comparison::File => {
            let program = workspace::target("release/undercroft");
            let ours = NbdServer::undercroft(&program, &["--name", "disk", &path])?;
            let qemu = NbdServer::qemu(&["--format=raw", &path])?;
            vec![
                turns("undercroft", ours, "disk", Client::Fio),
                turns("nbdkit", NbdServer::nbdkit(&["file", &path])?, "", Client::Fio),
                turns("qemu-nbd", qemu, "disk", Client::Fio),
            ]
        }
        Comparison::Memory => {
            let program = workspace::target("release/examples/memory_server");
            let ours = NbdServer::at_socket(&program, &[BYTES.to_string()])?;
            copy(&path, &ours.uri("disk", &[]))?;
            vec![
                turns("undercroft", ours, "disk", Client::Fio),
                turns("nbdkit", memory()?, "", Client::Fio),
            ]
        }
        Comparison::Client => vec![
            turns("undercroft", memory()?, "", Client::Ours),
            turns("fio", memory()?, "", Client::FioItself),
        ],
    })
}

/// Gives a server of memory its contents.
fn copy(file: &str, uri: &str) -> Result<()> {
    shell::run(Command::new("nbdcopy").args([file, uri]))
}

impl Turns {
    fn take(&mut self, load: &Load, seconds: u64) -> Result<()> {
        let uri = self.server.uri(self.export, &[]);
        let before = self.server.cpu_seconds()?;
        let Found { rate, count, cost } = match self.client {
            Client::Fio | Client::FioItself => load.by_fio(&uri, seconds)?,
            Client::Ours => load.by_client(&uri, seconds)?,
        };
        let servers = (self.server.cpu_seconds()? - before) * 1e6 / count;
        self.rates.push(rate);
        self.costs.push(if self.client == Client::Fio { servers } else { cost });
        Ok(())
    }
}

/// Prints what was measured with one load, and forgets it.
fn print_row(load: &Load, all: &mut [Turns]) {
    let ratio = |ours: &[f64], other: &[f64]| {
        let ratios: Vec<f64> = ours.iter().zip(other).map(|(one, other)| one / other).collect();
        median(&ratios)
    };
    let [ours, peers @ ..] = &*all else { return };
    print!("{:<24}{:>12}{:>8}", load.name, load.connections, load.flight);
    print!("{:>12.0}{:>10.1}", median(&ours.rates), median(&ours.costs));
    for peer in peers {
        let (rate, cost) = (ratio(&ours.rates, &peer.rates), ratio(&ours.costs, &peer.costs));
        print!("{:>14}", format!("{rate:.2} ({cost:.2})"));
    }
    println!();
    for turns in all {
        turns.rates.clear();
        turns.costs.clear();
    }
}
