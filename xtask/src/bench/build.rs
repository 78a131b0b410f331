//! `cargo xtask bench build`: how fast a tree becomes an image, side by side with other tools on
//! the same work in one run.
//!
//! All competitors take turns, round after round, so that a disturbance of the machine hits all of
//! them; what counts is the median, of the rounds after a first one. Before each turn, outside the
//! measured time, the old output is removed, everything is written back, and the source is read
//! through: it is in the page cache for all competitors, also on machines that give memory back to
//! their host as soon as it is idle.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use undercroft_judges::Xfsprogs;

use super::comparison::{Comparison, Program, Unit};
use super::layers::Layers;
use super::peers::{Competitor, Peers};
use super::source::Source;
use super::turns::in_turn;
use super::working_directory;
use crate::{newest, shell, system, workspace};

/// What is compared with each other: a source, and the names of competitors, ours first.
const GROUPS: [(&str, &[&str]); 4] = [
    ("a tar archive", &["undercroft from tar", "kernel mount and tar", "cat"]),
    (
        "a directory",
        &[
            "undercroft from directory",
            "newest mkfs.xfs -p directory",
            "mkfs.xfs -p prototype",
            "mke2fs -d directory",
        ],
    ),
    (
        "a container image of 10 layers",
        &["undercroft from 10 layers", "undercroft from tar", "umoci unpack, newest mkfs.xfs -p"],
    ),
    (
        "10 layers, gzip",
        &[
            "undercroft from 10 gzip layers",
            "undercroft from gzip tar",
            "umoci unpack gzip, newest mkfs.xfs -p",
        ],
    ),
];

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
}

impl BuildArguments {
    /// Whether some of the rows were asked for.
    pub(super) fn is_part(&self) -> bool {
        !self.only.is_empty()
    }
}

/// Runs the benchmark.
pub(super) fn build(arguments: &BuildArguments) -> Result<Vec<Comparison>> {
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
    for round in 0..=arguments.runs {
        let turns = in_turn(competitors.len(), |index| {
            let competitor = &competitors[index];
            let taken = turn(&source, &peers, competitor)?;
            eprintln!("round {round}: {} {taken:.2} s", competitor.name);
            if competitor.ours {
                judge(&peers, &newest, round)?;
            }
            Ok(taken)
        })?;
        if round > 0 {
            seconds.iter_mut().zip(turns).for_each(|(seconds, taken)| seconds.push(taken));
        }
    }
    peers.clean()?;
    let programs: Vec<Program> = competitors
        .iter()
        .zip(seconds)
        .map(|(competitor, values)| Program { name: competitor.name.to_owned(), values })
        .collect();
    Ok(GROUPS.iter().filter_map(|group| compared(&source, group, &programs)).collect())
}

/// The competitors of a group that were measured, unless there is none.
fn compared(
    source: &Source,
    (form, names): &(&str, &[&str]),
    programs: &[Program],
) -> Option<Comparison> {
    let measured = |name: &&str| programs.iter().find(|program| program.name == **name).cloned();
    let programs: Vec<Program> = names.iter().filter_map(measured).collect();
    let work = format!("{} from {form}", source.name);
    (!programs.is_empty())
        .then(|| Comparison { programs, ..Comparison::new(work, Unit::Seconds, []) })
}

/// The seconds of one competitor's turn.
fn turn(source: &Source, peers: &Peers, competitor: &Competitor) -> Result<f64> {
    peers.clean()?;
    peers.make_room(competitor)?;
    rustix::fs::sync();
    peers.read_through(source, competitor.input)?;
    let mut command = Command::new("sh");
    command.args(["-ec", &competitor.script]);
    let started = Instant::now();
    shell::output(&mut command)
        .with_context(|| format!("the competitor `{}` failed", competitor.name))?;
    Ok(started.elapsed().as_secs_f64())
}

/// Once, before anything counts: what we wrote must be a volume.
fn judge(peers: &Peers, newest: &Xfsprogs, round: usize) -> Result<()> {
    if round == 0 {
        newest.repair_check(peers.image()).context("our own image is not clean")?;
    }
    Ok(())
}
