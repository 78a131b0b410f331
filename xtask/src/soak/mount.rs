//! `cargo xtask soak mount` and `soak mount-kill`: suites of others on a mount of ours, each with a
//! volume of its own at whose end all judges look.

mod memory;
mod postgresql;
mod sqlite;
mod stand;
mod stress;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use undercroft_judges::random::Random;
use undercroft_judges::suite::kill::Kills;
use undercroft_judges::suite::pjdfstest::{self, Outcome};
use undercroft_judges::suite::{direct, fsx};
use undercroft_judges::{Scratch, kernel};

use crate::{newest, shell, system, workspace};
use stand::Stand;

/// One suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// What POSIX says about files, compared with the kernel's mount
    Pjdfstest,
    /// One file read and written in all ways, also mapped, and around the page cache
    Fsx,
    /// The stressors of stress-ng for file systems, compared with the kernel's mount
    StressNg,
    /// A trace of a file server
    Dbench,
    /// Everything that files do at once, and the memory of the server
    Memory,
    /// A repository cloned, packed anew, and checked
    Git,
    /// `SQLite` in the middle of transactions when the server is killed
    Sqlite,
    /// `PostgreSQL` under pgbench when the server is killed
    Postgresql,
}

/// Work on a mount.
#[derive(Args)]
pub(crate) struct MountArguments {
    /// Only this suite; may be given several times
    #[arg(long, value_name = "SUITE")]
    only: Vec<Suite>,
    /// Operations of the exercisers of one file
    #[arg(long, default_value_t = 1_000_000)]
    operations: u64,
    /// Seconds of each stressor, of dbench, and of the load under which memory is watched
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How often a server is killed under each database
    #[arg(long, default_value_t = 20)]
    count: u64,
    /// Seed of what is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Kill servers of a mount.
#[derive(Args)]
pub(crate) struct KillArguments {
    /// Number of kills
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Seed of their moments; processes interleave as they like
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the suites one after the other, also when one before failed.
pub(crate) fn mount(arguments: &MountArguments) -> Result<()> {
    prepare()?;
    system::install(system::FOR_MOUNT_SOAKS)?;
    let program = build()?;
    let mut failed = Vec::new();
    for suite in Suite::value_variants() {
        if !arguments.only.is_empty() && !arguments.only.contains(suite) {
            continue;
        }
        let name = suite.to_possible_value().map(|value| value.get_name().to_owned());
        let name = name.unwrap_or_default();
        println!("==> {name}");
        match suite.run(&program, arguments) {
            Ok(done) => println!("==> {name}: ok, {done}"),
            Err(error) => {
                println!("==> {name}: FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Kills servers under load, one after the other, and has both replays hold what was synced.
pub(crate) fn kill(arguments: &KillArguments) -> Result<()> {
    prepare()?;
    let program = build()?;
    let own = std::env::current_exe().context("this program has no path")?;
    let worker = || Command::new(&own);
    let kills = Kills::new(&program, &worker, arguments.seed)?;
    let (mut operations, mut syncs) = (0, 0);
    kills.run(arguments.count, |round, work| {
        operations += work.operations;
        syncs += work.syncs;
        println!(
            "kill {}: {} operations, {} of them syncs",
            round + 1,
            work.operations,
            work.syncs
        );
    })?;
    println!(
        "{} kills, {operations} operations, {syncs} of them syncs: all of it replays, here and by the kernel",
        arguments.count
    );
    Ok(())
}

fn prepare() -> Result<()> {
    if let Some(obstacle) = kernel::fuse_obstacle() {
        bail!("{obstacle}");
    }
    system::install(system::FOR_TESTS)?;
    system::install_crates(system::CRATES_FOR_TESTS)?;
    newest::install(false).map(drop)
}

pub(super) fn build() -> Result<std::path::PathBuf> {
    shell::run(workspace::cargo().args(["build", "--release", "--package", "undercroft"]))?;
    Ok(workspace::target("release/undercroft"))
}

impl Suite {
    /// Runs it; says what it did.
    fn run(self, program: &Path, arguments: &MountArguments) -> Result<String> {
        let MountArguments { operations, seconds, count, seed, .. } = *arguments;
        match self {
            Self::Pjdfstest => compare(program),
            Self::Fsx => {
                let mut stand = Stand::new(program, &[])?;
                fsx::run(&stand.path(), operations, seed, stand.outside())?;
                direct::run(&stand.path(), operations / 10, seed)?;
                stand.accept()
            }
            Self::StressNg => stress::run(program, seconds),
            Self::Dbench => {
                let mut stand = Stand::new(program, &[])?;
                let mut dbench = Command::new("dbench");
                dbench.arg("-D").arg(stand.path()).args(["-t", &seconds.to_string(), "8"]);
                let said = shell::output(&mut dbench)?;
                let throughput = said.lines().find(|line| line.starts_with("Throughput"));
                let throughput = throughput.context("dbench did not end")?;
                println!("{throughput}");
                // Its first second or more is not counted.
                ensure!(!throughput.contains(" 0 MB/sec"), "dbench did nothing: more --seconds");
                stand.accept()
            }
            Self::Memory => memory::run(program, seconds),
            Self::Git => git(program),
            Self::Sqlite => sqlite::run(program, count, &mut Random::new(seed)),
            Self::Postgresql => postgresql::run(program, count, &mut Random::new(seed)),
        }
    }
}

/// pjdfstest on ours and on the kernel's: a difference must be in the table of CONTRIBUTING.md.
fn compare(program: &Path) -> Result<String> {
    let kernels = Scratch::new(stand::SIZE)?;
    let mut stand = Stand::new(program, &[])?;
    let ours = pjdfstest::run(&stand.path(), kernels.path())?;
    let theirs = pjdfstest::run(kernels.path(), &stand.path())?;
    for (name, verdicts) in [("ours", &ours), ("the kernel's", &theirs)] {
        let [passed, skipped, failed] =
            [Outcome::Passed, Outcome::Skipped, Outcome::Failed].map(|one| verdicts.count(one));
        println!("{name}: {passed} passed, {skipped} skipped, {failed} failed");
    }
    let unknown = pjdfstest::unknown(&ours.differences(&theirs));
    ensure!(unknown.is_empty(), "{}", unknown.join("\n"));
    stand.accept()
}

/// This repository is cloned onto the mount, packed anew, and checked: also behind a second mount.
fn git(program: &Path) -> Result<String> {
    let mut stand = Stand::new(program, &[])?;
    let git = |directory: &Path, arguments: &[&str]| {
        let mut git = Command::new("git");
        // Owners may be others than who runs this.
        git.args(["-c", "safe.directory=*", "-C"]).arg(directory);
        shell::output(git.args(arguments))
    };
    let clone = stand.path().join("clone");
    let (from, to) = (workspace::root().display().to_string(), clone.display().to_string());
    git(&stand.path(), &["clone", "--quiet", "--no-hardlinks", &from, &to])?;
    git(&clone, &["fsck", "--full", "--strict"])?;
    git(&clone, &["repack", "--quiet", "-a", "-d", "-f"])?;
    git(&clone, &["checkout", "--quiet", "HEAD~10"])?;
    // The mount point is another one then.
    stand.again()?;
    let clone = stand.path().join("clone");
    git(&clone, &["checkout", "--quiet", "-"])?;
    git(&clone, &["fsck", "--full", "--strict"])?;
    let changed = git(&clone, &["status", "--porcelain"])?;
    ensure!(changed.is_empty(), "files are not what was checked out:\n{changed}");
    stand.accept()
}
