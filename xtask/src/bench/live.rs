//! `cargo xtask bench meta` and `bench replay`: a volume of ours against the kernel's XFS on a copy
//! of the same image, on the same disk, through a loop mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs};

use super::comparison::{Comparison, Program, Unit};
use super::working_directory;
use crate::{newest, shell, system, workspace};

/// Directories that the files of a dirty volume are spread over.
const DIRECTORIES: usize = 1000;

/// A case of the laboratory's experiment on empty files.
#[derive(Deserialize)]
struct MetaRecord {
    target: String,
    threads: usize,
    directories: usize,
    operations: Vec<Speed>,
}

/// One operation of a case, in the order of the rounds.
#[derive(Deserialize)]
struct Speed {
    operation: String,
    per_second: Vec<f64>,
}

/// Compare operations on empty files.
#[derive(Args)]
pub(crate) struct MetaArguments {
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Size of the volumes in MiB
    #[arg(long, default_value_t = 4096)]
    size: u64,
    /// Where images are written
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Compare the replay of a journal.
#[derive(Args)]
pub(crate) struct ReplayArguments {
    /// Number of rounds
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Files that the kernel creates before the volume is cut off: these fill a journal of 64 MiB
    /// as far as a kernel lets it become full
    #[arg(long, default_value_t = 105_000)]
    files: usize,
    /// Size of the volumes in MiB
    #[arg(long, default_value_t = 4096)]
    size: u64,
    /// Where images are written
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Creates, looks at and deletes files on two copies of one image, ours and the kernel's, in turn.
pub(super) fn meta(arguments: &MetaArguments) -> Result<Vec<Comparison>> {
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let (base, ours, peer) = (work.join("base"), work.join("ours"), work.join("peer"));
    make(&base, arguments.size)?;
    copy(&base, &ours)?;
    copy(&base, &peer)?;
    let mount = LoopMount::new(&peer, Access::ReadWrite, &[])?;
    let mut lab = Command::new(workspace::target("release/undercroft"));
    lab.args(["lab", "meta", "--json", "--repeat", &arguments.runs.to_string(), "--image"]);
    let records = shell::output(lab.arg(&ours).arg("--on").arg(mount.path()))?;
    mount.unmount()?;
    newest.repair_check(&ours).context("our own volume is not clean")?;
    [base, ours, peer].iter().try_for_each(|image| remove(image))?;
    in_pairs(&records)
}

/// The records of the laboratory, in which ours and the kernel's are two of the same case.
fn in_pairs(records: &str) -> Result<Vec<Comparison>> {
    let mut comparisons: Vec<Comparison> = Vec::new();
    for line in records.lines() {
        let record: MetaRecord =
            serde_json::from_str(line).with_context(|| format!("not of an experiment: {line}"))?;
        let is_ours = record.target == "undercroft";
        let name = if is_ours { "undercroft" } else { "the kernel's XFS" };
        let directories = if record.directories == 1 { "directory" } else { "directories" };
        let threads = if record.threads == 1 { "thread" } else { "threads" };
        for Speed { operation, per_second } in record.operations {
            let work = format!(
                "{operation}, {} {directories}, {} {threads}",
                record.directories, record.threads
            );
            let program = Program { name: name.to_owned(), values: per_second };
            match comparisons.iter_mut().find(|comparison| comparison.work == work) {
                // Ours is the first of a table, whichever had the first turn.
                Some(comparison) if is_ours => comparison.programs.insert(0, program),
                Some(comparison) => comparison.programs.push(program),
                None => comparisons.push(Comparison {
                    programs: vec![program],
                    ..Comparison::new(work, Unit::PerSecond, [])
                }),
            }
        }
    }
    ensure!(!comparisons.is_empty(), "the laboratory printed no record");
    Ok(comparisons)
}

/// Replays copies of one volume that the kernel left dirty: the kernel's mount against ours.
pub(super) fn replay(arguments: &ReplayArguments) -> Result<Vec<Comparison>> {
    ensure!(arguments.runs > 0, "--runs must be at least 1");
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let (base, ours, peer) = (work.join("base"), work.join("ours"), work.join("peer"));
    make(&base, arguments.size)?;
    soil(&base, arguments.files)?;
    let binary = workspace::target("release/undercroft");
    eprint!("{}", shell::output(Command::new(&binary).args(["replay", "--dry-run"]).arg(&base))?);
    let work_done = format!("the journal of {} new files", arguments.files);
    let programs = ["undercroft replay", "mount by the kernel"];
    let mut comparison = Comparison::new(work_done, Unit::Seconds, programs);
    for round in 1..=arguments.runs {
        copy(&base, &ours)?;
        copy(&base, &peer)?;
        rustix::fs::sync();
        let device = LoopDevice::attach(&peer)?;
        let directory = work.join("mount");
        fs::create_dir_all(&directory)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "xfs", "-o", "nouuid"]).arg(device.path()).arg(&directory);
        let kernel = timed(|| shell::run(&mut mount))?;
        shell::run(Command::new("umount").arg(&directory))?;
        drop(device);
        let own =
            timed(|| shell::output(Command::new(&binary).arg("replay").arg(&ours)).map(drop))?;
        eprintln!("round {round}: kernel {kernel:.3} s, undercroft {own:.3} s");
        comparison.add([own, kernel]);
        newest.repair_check(&ours).context("what we replayed is not clean")?;
    }
    [base, ours, peer].iter().try_for_each(|image| remove(image))?;
    Ok(vec![comparison])
}

/// Our command, the judges, and a directory to work in.
pub(super) fn prepare(work: Option<&PathBuf>) -> Result<(PathBuf, Xfsprogs)> {
    ensure!(rustix::process::geteuid().is_root(), "a volume is mounted; run as root");
    system::install(system::FOR_BENCHMARKS)?;
    let newest = newest::install(false)?;
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    Ok((working_directory(work)?, newest))
}

/// An empty volume of ours.
fn make(image: &Path, mebibytes: u64) -> Result<()> {
    let mut mkfs = Command::new(workspace::target("release/undercroft"));
    mkfs.args(["mkfs", "--force", "--size", &format!("{mebibytes}M")]).arg(image);
    shell::output(&mut mkfs).map(drop)
}

/// A copy without holes, so that the file system below has nothing to allocate any more.
fn copy(from: &Path, to: &Path) -> Result<()> {
    shell::run(Command::new("cp").arg("--sparse=never").arg(from).arg(to))
}

/// Has the kernel create files on a volume, and give it up with its journal as it is then.
fn soil(image: &Path, files: usize) -> Result<()> {
    let mount = LoopMount::new(image, Access::ReadWrite, &[])?;
    for number in 0..DIRECTORIES.min(files) {
        fs::create_dir(mount.join(number.to_string()))?;
    }
    for number in 0..files {
        let directory = mount.join((number % DIRECTORIES).to_string());
        fs::File::create(directory.join(format!("file-{number:08}")))?;
    }
    shell::run(Command::new("xfs_io").args(["-x", "-c", "shutdown -f"]).arg(mount.path()))?;
    Ok(mount.unmount()?)
}

pub(super) fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

pub(super) fn remove(image: &Path) -> Result<()> {
    fs::remove_file(image).with_context(|| format!("cannot remove {}", image.display()))
}
