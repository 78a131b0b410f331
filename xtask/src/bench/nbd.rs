//! `cargo xtask bench nbd`: our server beside nbdkit and qemu-nbd on the same file, with fio as the
//! client, at a socket of this machine.
//!
//! The servers take turns in every round. What counts is the median of the ratios of a round.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use undercroft_judges::nbd::NbdServer;

use super::record::median;
use super::working_directory;
use crate::{shell, system, workspace};

/// Bytes of the file.
const BYTES: u64 = 1 << 30;
/// Connections, and requests in flight on all of them.
const LOADS: [(u64, u64); 6] = [(1, 1), (1, 32), (1, 256), (4, 4), (4, 32), (4, 256)];
/// Names of the loads, and what fio calls them.
const PATTERNS: [(&str, &str, &str); 4] = [
    ("4 KiB random reads", "randread", "4k"),
    ("4 KiB random writes", "randwrite", "4k"),
    ("256 KiB reads in order", "read", "256k"),
    ("256 KiB writes in order", "write", "256k"),
];

/// Compare servers of network disks.
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
}

/// A server and its measured turns with one load.
struct Turns {
    name: &'static str,
    server: NbdServer,
    /// Requests a second, and microseconds of the server's CPU for one.
    rates: Vec<f64>,
    costs: Vec<f64>,
}

/// Runs the benchmark.
pub(crate) fn nbd(arguments: &NbdArguments) -> Result<()> {
    ensure!(arguments.runs > 0 && arguments.seconds > 0, "--runs and --seconds must be at least 1");
    system::install(system::FOR_TESTS)?;
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    let memory = PathBuf::from("/dev/shm");
    let home = tempfile::tempdir_in(working_directory(arguments.work.as_ref().or(Some(&memory)))?)?;
    let file = home.path().join("disk");
    fill(&file)?;
    println!(
        "{:<24}{:>12}{:>8}{:>12}{:>10}{:>12}{:>12}",
        "load", "connections", "flight", "ours/s", "us of CPU", "/ nbdkit", "/ qemu-nbd"
    );
    for (name, pattern, block) in PATTERNS {
        for (connections, flight) in LOADS {
            let mut all = servers(&file)?;
            for _ in 0..arguments.runs {
                for turns in &mut all {
                    let load = Load { pattern, block, connections, flight };
                    turns.take(&load, arguments.seconds)?;
                }
            }
            print_row(name, connections, flight, &all);
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

/// The servers in the order of their turns; ours comes first.
fn servers(file: &Path) -> Result<[Turns; 3]> {
    let path = file.display().to_string();
    let program = workspace::target("release/undercroft");
    let turns = |name, server| Turns { name, server, rates: Vec::new(), costs: Vec::new() };
    Ok([
        turns("undercroft", NbdServer::undercroft(&program, &["--name", "disk", &path])?),
        turns("nbdkit", NbdServer::nbdkit(&["file", &path])?),
        turns("qemu-nbd", NbdServer::qemu(&["--format=raw", &path])?),
    ])
}

struct Load {
    pattern: &'static str,
    block: &'static str,
    connections: u64,
    flight: u64,
}

impl Turns {
    fn take(&mut self, load: &Load, seconds: u64) -> Result<()> {
        let export = if self.name == "qemu-nbd" { "disk" } else { "" };
        let uri = self.server.uri(export, &[]);
        let before = self.server.cpu_seconds()?;
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--ioengine=nbd",
            "--thread",
            "--time_based",
            "--group_reporting",
        ]);
        fio.args(["--output-format=json", "--size", &BYTES.to_string()]);
        fio.arg(format!("--uri={uri}")).arg(format!("--rw={}", load.pattern));
        fio.arg(format!("--bs={}", load.block)).arg(format!("--numjobs={}", load.connections));
        fio.arg(format!("--iodepth={}", load.flight / load.connections));
        fio.arg(format!("--runtime={seconds}"));
        // Its NBD engine says on the same output that it has connected.
        let text = shell::output(&mut fio)?;
        let start = text.find('{').context("fio told no JSON")?;
        let told: Value = serde_json::from_str(&text[start..]).context("fio told no JSON")?;
        let cpu = self.server.cpu_seconds()? - before;
        let job = &told["jobs"][0];
        let kind = if load.pattern.ends_with("read") { "read" } else { "write" };
        let number =
            |name| job[kind][name].as_f64().with_context(|| format!("fio did not tell {name}"));
        let (rate, count) = (number("iops")?, number("total_ios")?);
        ensure!(count > 0.0, "{} answered nothing", self.name);
        self.rates.push(rate);
        self.costs.push(cpu * 1e6 / count);
        Ok(())
    }
}

fn print_row(name: &str, connections: u64, flight: u64, all: &[Turns; 3]) {
    let [ours, peers @ ..] = all;
    let ratio = |ours: &[f64], other: &[f64]| {
        let ratios: Vec<f64> = ours.iter().zip(other).map(|(one, other)| one / other).collect();
        median(&ratios)
    };
    let [nbdkit, qemu] = peers.each_ref().map(|peer| {
        let (rate, cost) = (ratio(&ours.rates, &peer.rates), ratio(&ours.costs, &peer.costs));
        format!("{rate:.2} ({cost:.2})")
    });
    println!(
        "{name:<24}{connections:>12}{flight:>8}{:>12.0}{:>10.1}{nbdkit:>12}{qemu:>12}",
        median(&ours.rates),
        median(&ours.costs),
    );
}
