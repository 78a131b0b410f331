//! `cargo xtask bench build`: how fast a tree becomes an image, side by side with other tools on
//! the same work in one run.
//!
//! All competitors take turns, round after round, so that a disturbance of the machine hits all of
//! them; what counts is the median, of the rounds after a first one. Before each turn, outside the
//! measured time, the old output is removed, everything is written back, and the source is read
//! through: it is in the page cache for all competitors, also on machines that give memory back to
//! their host as soon as it is idle.

mod layers;
mod live;
mod mount;
mod nbd;
mod peers;
mod prototype;
mod record;
mod shared;
mod source;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use undercroft_judges::Xfsprogs;

use crate::{newest, shell, system, workspace};
use layers::Layers;
pub(crate) use live::{MetaArguments, ReplayArguments, meta, replay};
pub(crate) use mount::{MountArguments, run as mount};
pub(crate) use nbd::{NbdArguments, nbd};
use peers::{Competitor, Peers};
use record::{Record, Row};
pub(crate) use shared::{ReflinkArguments, reflink};
use source::Source;

/// Measure `undercroft build`.
#[derive(Args)]
pub(crate) struct BuildArguments {
    /// The tree to pack: `linux` is the source of the Debian package linux-source-6.1
    #[arg(long, value_name = "NAME", default_value = "linux", conflicts_with_all = ["tar", "dir"])]
    source: String,
    /// The tree to pack as a plain tar archive
    #[arg(long, requires = "dir")]
    tar: Option<PathBuf>,
    /// The same tree as a directory
    #[arg(long, requires = "tar")]
    dir: Option<PathBuf>,
    /// Number of counted rounds
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Where images are written; a directory with room for the tree six times
    #[arg(long)]
    work: Option<PathBuf>,
    /// Only these competitors, by name
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Where to write the record of the run
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The directory for images that was asked for, or that of the build.
fn working_directory(work: Option<&PathBuf>) -> Result<PathBuf> {
    let work = work.cloned().unwrap_or_else(|| workspace::target("bench"));
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work)
}

/// Runs the benchmark.
pub(crate) fn build(arguments: &BuildArguments) -> Result<()> {
    ensure!(arguments.runs > 0, "--runs must be at least 1");
    ensure!(
        rustix::process::geteuid().is_root(),
        "one of the competitors mounts its image; run as root"
    );
    system::install(system::FOR_BENCHMARKS)?;
    let newest = newest::install(false)?;
    let source = match (&arguments.tar, &arguments.dir) {
        (Some(tar), Some(directory)) => Source::given(tar, directory)?,
        _ if arguments.source == "linux" => Source::linux()?,
        _ => bail!("--source {}: only `linux` is known; or give --tar and --dir", arguments.source),
    };
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;

    let work = working_directory(arguments.work.as_ref())?;
    let layers = Layers::of(&source, &work)?;
    let peers = Peers::prepare(&source, layers, &work, newest.clone())?;
    let competitors: Vec<Competitor> = peers
        .all()?
        .into_iter()
        .filter(|competitor| {
            arguments.only.is_empty() || arguments.only.contains(&competitor.name.to_owned())
        })
        .collect();
    ensure!(!competitors.is_empty(), "--only names no competitor");

    let mut seconds = vec![Vec::new(); competitors.len()];
    let mut ours = None;
    for round in 0..=arguments.runs {
        for (competitor, seconds) in competitors.iter().zip(&mut seconds) {
            let (taken, output) = turn(&source, &peers, competitor)?;
            eprintln!("round {round}: {} {taken:.2} s", competitor.name);
            if round > 0 {
                seconds.push(taken);
            }
            if competitor.ours {
                judge(&peers, &newest, round)?;
                ours = serde_json::from_str(output.trim()).ok().or(ours);
            }
        }
    }
    peers.clean()?;
    let rows = competitors
        .iter()
        .zip(seconds)
        .map(|(competitor, seconds)| Row::new(competitor, seconds))
        .collect();
    let record = Record::new(&source, &newest, rows, ours)?;
    print!("{record}");
    let path = arguments.json.clone().unwrap_or_else(|| work.join("build.json"));
    fs::write(&path, serde_json::to_string_pretty(&record)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("\nrecord: {}", path.display());
    Ok(())
}

/// One competitor's turn: its seconds and its output.
fn turn(source: &Source, peers: &Peers, competitor: &Competitor) -> Result<(f64, String)> {
    peers.clean()?;
    peers.make_room(competitor)?;
    rustix::fs::sync();
    peers.read_through(source, competitor.input)?;
    let mut command = Command::new("sh");
    command.args(["-ec", &competitor.script]);
    let started = Instant::now();
    let output = shell::output(&mut command)
        .with_context(|| format!("the competitor `{}` failed", competitor.name))?;
    Ok((started.elapsed().as_secs_f64(), output))
}

/// Once, before anything counts: what we wrote must be a volume.
fn judge(peers: &Peers, newest: &Xfsprogs, round: usize) -> Result<()> {
    if round == 0 {
        newest.repair_check(peers.image()).context("our own image is not clean")?;
    }
    Ok(())
}
