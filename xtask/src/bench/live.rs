//! `cargo xtask bench meta` and `bench replay`: a volume of ours against the kernel's XFS on a copy
//! of the same image, on the same disk, through a loop mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopDevice, LoopMount, Xfsprogs};

use super::record::median;
use super::working_directory;
use crate::{newest, shell, system, workspace};

/// Directories that the files of a dirty volume are spread over.
const DIRECTORIES: usize = 1000;

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
pub(crate) fn meta(arguments: &MetaArguments) -> Result<()> {
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let (base, ours, peer) = (work.join("base"), work.join("ours"), work.join("peer"));
    make(&base, arguments.size)?;
    copy(&base, &ours)?;
    copy(&base, &peer)?;
    let mount = LoopMount::new(&peer, Access::ReadWrite, &[])?;
    let mut lab = Command::new(workspace::target("release/undercroft"));
    lab.args(["lab", "meta", "--repeat", &arguments.runs.to_string(), "--image"]).arg(&ours);
    shell::run(lab.arg("--on").arg(mount.path()))?;
    mount.unmount()?;
    newest.repair_check(&ours).context("our own volume is not clean")?;
    [base, ours, peer].iter().try_for_each(|image| remove(image))
}

/// Replays copies of one volume that the kernel left dirty: the kernel's mount against ours.
pub(crate) fn replay(arguments: &ReplayArguments) -> Result<()> {
    ensure!(arguments.runs > 0, "--runs must be at least 1");
    let (work, newest) = prepare(arguments.work.as_ref())?;
    let (base, ours, peer) = (work.join("base"), work.join("ours"), work.join("peer"));
    make(&base, arguments.size)?;
    soil(&base, arguments.files)?;
    let binary = workspace::target("release/undercroft");
    print!("{}", shell::output(Command::new(&binary).args(["replay", "--dry-run"]).arg(&base))?);
    let mut ratios = Vec::new();
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
        println!("round {round}: kernel {kernel:.3} s, undercroft {own:.3} s");
        ratios.push(kernel / own);
        newest.repair_check(&ours).context("what we replayed is not clean")?;
    }
    println!("median of the ratios: {:.2}", median(&ratios));
    [base, ours, peer].iter().try_for_each(|image| remove(image))
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

fn remove(image: &Path) -> Result<()> {
    fs::remove_file(image).with_context(|| format!("cannot remove {}", image.display()))
}
