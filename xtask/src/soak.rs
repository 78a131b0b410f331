//! `cargo xtask soak`: every fuzz target for a while, one after the other; many random images; long
//! histories of the allocator and of files; many bios to a driver that fails.

mod ceph;
mod dist;
mod fstests;
mod managers;
mod mount;
mod nbd_interop;
mod nbd_tester;
mod publish;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{debian, shell, system, workspace};
pub(crate) use ceph::{CephArguments, nbd_ceph};
pub(crate) use dist::{DistArguments, run as dist};
pub(crate) use fstests::{FstestsArguments, fstests};
pub(crate) use managers::{ManagersArguments, managers};
pub(crate) use mount::{KillArguments, MountArguments, kill as mount_kill, mount};
pub(crate) use nbd_interop::{InteropArguments, nbd_interop};
pub(crate) use nbd_tester::{TesterArguments, nbd_tester};
pub(crate) use publish::{PublishArguments, run as publish};

/// Most bytes of an input: targets take patches, or archives of some headers.
const LONGEST_INPUT: u32 = 8192;
/// The same of archives, which a test keeps their seeds to.
const LONGEST_ARCHIVE: u32 = 32 << 10;
/// Memory at which an input counts as a defect, in MiB; sound ones stay below a quarter of it.
const MEMORY_MIB: u32 = 1024;
/// Seconds after which an input counts as a defect; most take a millisecond.
const HANG_SECONDS: u32 = 20;

/// Fuzz every target.
#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// Seconds for each target; `open_and_walk`, which has the most to find, gets four times as long
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Only this target; may be given several times
    #[arg(long, value_name = "TARGET")]
    only: Vec<String>,
}

/// Build random images.
#[derive(Args)]
pub(crate) struct BuildArguments {
    /// Number of images
    #[arg(long, default_value_t = 300)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1000)]
    seed: u64,
}

/// A long run of an example, built for speed, with these arguments.
fn example(package: &str, name: &str, arguments: &[&dyn ToString]) -> Command {
    example_with(&[], package, name, arguments)
}

/// The same, built with further options of cargo.
fn example_with(
    options: &[&str],
    package: &str,
    name: &str,
    arguments: &[&dyn ToString],
) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", package, "--example", name]).args(options);
    cargo.arg("--").args(arguments.iter().map(|argument| argument.to_string()));
    cargo
}

/// Work the allocator.
#[derive(Args)]
pub(crate) struct AllocArguments {
    /// Allocations and frees for each variant
    #[arg(long, default_value_t = 1_000_000)]
    operations: u64,
    /// Seed of the history
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this variant: near, near-2018, by-size or indexed
    #[arg(long)]
    variant: Option<String>,
}

/// Runs a long history of allocations and frees with each variant, compares the volume with a
/// model again and again, and has the judges look at it at the end.
pub(crate) fn alloc(arguments: &AllocArguments) -> Result<()> {
    let mut cargo =
        example("undercroft-xfs", "soak_alloc", &[&arguments.operations, &arguments.seed]);
    cargo.args(&arguments.variant);
    shell::run(&mut cargo)
}

/// Make random volumes smaller.
#[derive(Args)]
pub(crate) struct ShrinkArguments {
    /// Number of volumes
    #[arg(long, default_value_t = 500)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Makes volumes of random formats, has the kernel age them, shrinks each to a random size or the
/// smallest, and has the judges look at it, the kernel fill it, and grow it again; needs root.
pub(crate) fn shrink(arguments: &ShrinkArguments) -> Result<()> {
    let numbers: [&dyn ToString; 2] = [&arguments.count, &arguments.seed];
    shell::run(&mut example("undercroft-xfs", "soak_shrink", &numbers))
}

/// Cut the power while random volumes become smaller.
#[derive(Args)]
pub(crate) struct ShrinkCutsArguments {
    /// Number of volumes
    #[arg(long, default_value_t = 20)]
    volumes: u64,
    /// Number of random cuts in all, beside those at every flush
    #[arg(long, default_value_t = 2000)]
    cuts: u64,
    /// Seed of the first volume; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Records the shrinks of random volumes, cuts each at every flush and at random points with what was not
/// flushed dropped, kept or torn, and looks at what is left: the kernel mounts it, or refuses it at a
/// guarded moment, `xfs_repair` and a second shrink end well; needs root.
pub(crate) fn shrink_cuts(arguments: &ShrinkCutsArguments) -> Result<()> {
    let numbers: [&dyn ToString; 3] = [&arguments.volumes, &arguments.cuts, &arguments.seed];
    let mut cargo = example("undercroft-xfs", "soak_shrink_cuts", &numbers);
    shell::run(cargo.env(undercroft_judges::rounds::SOAK_VARIABLE, "1"))
}

/// Change files.
#[derive(Args)]
pub(crate) struct DataArguments {
    /// Operations for each format
    #[arg(long, default_value_t = 10_000)]
    operations: u64,
    /// Seed of the first history; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Writes, truncates, punches, shifts and shares files at random in every format, on volumes with
/// space and on full ones, beside the kernel on a copy, and has the judges look at both; needs root.
/// Then makes files durable by tickets and cuts that off at random.
pub(crate) fn data(arguments: &DataArguments) -> Result<()> {
    shell::run(&mut example(
        "undercroft-xfs",
        "soak_data",
        &[&arguments.operations, &arguments.seed],
    ))
}

/// Crash live volumes.
#[derive(Args)]
pub(crate) struct CrashArguments {
    /// Number of crashes; 0 goes on until stopped
    #[arg(long, default_value_t = 0)]
    count: u64,
    /// Seed of the first history; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs random operations on live volumes, cuts them off at random points, and replays each cut.
pub(crate) fn crash(arguments: &CrashArguments) -> Result<()> {
    shell::run(&mut example("undercroft-xfs", "soak_crash", &[&arguments.count, &arguments.seed]))
}

/// Use a volume as a server does.
#[derive(Args)]
pub(crate) struct ServeArguments {
    /// How long
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Seed of the first history; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Has eight threads read, write, rename and remove files whose every byte is known, on devices that
/// are late, full or failing, with the order of locks checked; the judges look at each volume. Needs
/// root.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    shell::run(&mut example_with(
        &["--features", "checked-locks"],
        "undercroft-xfs",
        "soak_serve",
        &[&arguments.minutes, &arguments.seed],
    ))
}

/// Use a volume as a server does, until the power fails.
#[derive(Args)]
pub(crate) struct ServeCrashArguments {
    /// Number of crashes that we replay
    #[arg(long, default_value_t = 5000)]
    count: u64,
    /// Number of further ones that the kernel replays
    #[arg(long, default_value_t = 500)]
    kernel: u64,
    /// Seed of the first history; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Has eight threads change files, with the order of locks checked, cuts that off at random points,
/// and looks behind our replay and the kernel's for what answered tickets cover. Needs root if the
/// kernel replays some.
pub(crate) fn serve_crash(arguments: &ServeCrashArguments) -> Result<()> {
    shell::run(&mut example_with(
        &["--features", "checked-locks"],
        "undercroft-xfs",
        "soak_serve_crash",
        &[&arguments.count, &arguments.kernel, &arguments.seed],
    ))
}

/// Cut volumes with large directory blocks off.
#[derive(Args)]
pub(crate) struct TornArguments {
    /// Number of cuts of each kind
    #[arg(long, default_value_t = 60)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Kills processes that change directories with blocks of 64 KiB or replay a journal with blocks of
/// 16 KiB, takes the power away from others, and lets the kernel mount the result. Needs root.
pub(crate) fn torn(arguments: &TornArguments) -> Result<()> {
    shell::run(&mut example("undercroft-xfs", "soak_torn", &[&arguments.count, &arguments.seed]))
}

/// Change damaged volumes.
#[derive(Args)]
pub(crate) struct MutationsArguments {
    /// Number of volumes
    #[arg(long, default_value_t = 20_000)]
    rounds: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Removes, moves, writes and cuts files of volumes with metadata that is wrong and has right
/// checksums. Needs root: the kernel makes the volume.
pub(crate) fn mutations(arguments: &MutationsArguments) -> Result<()> {
    shell::run(&mut example_with(
        &["--config", "profile.release.overflow-checks=true"],
        "undercroft-fs",
        "soak_mutations",
        &[&arguments.rounds, &arguments.seed],
    ))
}

/// Repair damaged volumes.
#[derive(Args)]
pub(crate) struct RepairArguments {
    /// Number of volumes
    #[arg(long, default_value_t = 10_000)]
    rounds: u64,
    /// Most blocks of metadata that are changed in each
    #[arg(long, default_value_t = 10)]
    faults: u64,
    /// Number of repairs that are recorded and cut
    #[arg(long, default_value_t = 50)]
    cuts: u64,
    /// Random points at which each of them is cut, beside those at every flush
    #[arg(long, default_value_t = 1000)]
    points: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Repairs volumes with metadata that is wrong and has right checksums: the newest `xfs_repair -n` finds
/// nothing then, and no file is lost that xfs_repair keeps. Cuts recorded repairs, with writes dropped and torn.
/// Looks at 10,000 sound volumes, of which nothing is to change. Needs root.
pub(crate) fn repair(arguments: &RepairArguments) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--release", "--package", "undercroft-repair", "--test", "suite", "--"]);
    cargo.arg("--nocapture").env(undercroft_judges::rounds::SOAK_VARIABLE, "1");
    cargo.env("UNDERCROFT_ROUNDS", arguments.rounds.to_string());
    cargo.env("UNDERCROFT_FAULTS", arguments.faults.to_string());
    cargo.env("UNDERCROFT_CUTS", arguments.cuts.to_string());
    cargo.env("UNDERCROFT_POINTS", arguments.points.to_string());
    shell::run(cargo.env("UNDERCROFT_SEED", arguments.seed.to_string()))
}

/// Turn features of volumes on and off.
#[derive(Args)]
pub(crate) struct UpgradeArguments {
    /// Number of random volumes
    #[arg(long, default_value_t = 300)]
    rounds: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Random volumes of `mkfs.xfs` and the kernel get random features: the newest `xfs_repair -n` finds nothing, the
/// kernel writes to them, and files are as they were. Cuts upgrades at more points than a check. Needs root.
pub(crate) fn upgrade(arguments: &UpgradeArguments) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--release", "--package", "undercroft-repair", "--test", "suite", "--"]);
    cargo.args(["upgrade", "--nocapture"]).env(undercroft_judges::rounds::SOAK_VARIABLE, "1");
    cargo.env("UNDERCROFT_ROUNDS", arguments.rounds.to_string());
    shell::run(cargo.env("UNDERCROFT_SEED", arguments.seed.to_string()))
}

/// Compare our check with that of xfsprogs.
#[derive(Args)]
pub(crate) struct CheckArguments {
    /// Number of volumes, each with one wrong field
    #[arg(long, default_value_t = 3000)]
    rounds: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Changes one field after the other and asks our check and the newest `xfs_repair -n`: they may
/// differ only where CONTRIBUTING.md lists it. Needs root: the kernel makes the volume.
pub(crate) fn check(arguments: &CheckArguments) -> Result<()> {
    shell::run(&mut example("undercroft-xfs", "soak_check", &[&arguments.rounds, &arguments.seed]))
}

/// Mirror operations on files on a kernel mount.
#[derive(Args)]
pub(crate) struct OpsArguments {
    /// Operations on each format
    #[arg(long, default_value_t = 3000)]
    operations: u32,
    /// Seed of the first format; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs random operations on volumes of every format that mounts, and the same on a kernel mount of
/// a copy: the trees must be the same, and the judges content. Needs root.
pub(crate) fn ops(arguments: &OpsArguments) -> Result<()> {
    shell::run(&mut example(
        "undercroft-xfs",
        "soak_ops",
        &[&arguments.operations, &arguments.seed],
    ))
}

/// Submit bios to a driver that fails at random.
#[derive(Args)]
pub(crate) struct BlockArguments {
    /// Number of bios
    #[arg(long, default_value_t = 10_000_000)]
    operations: u64,
    /// Seed of what goes wrong
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Submits bios in every way there is and checks that each is answered once.
pub(crate) fn block(arguments: &BlockArguments) -> Result<()> {
    shell::run(&mut example(
        "undercroft-block",
        "soak_block",
        &[&arguments.operations, &arguments.seed],
    ))
}

/// Break connections to network disks.
#[derive(Args)]
pub(crate) struct NbdArguments {
    /// Number of breaks
    #[arg(long, default_value_t = 1000)]
    breaks: u64,
    /// Seed of the first load; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Kills servers that lose what they have not flushed, and cuts connections, under a load of writes
/// and flushes; every block that is read, and all of them behind the last kill, hold what was
/// written last.
pub(crate) fn nbd(arguments: &NbdArguments) -> Result<()> {
    system::install(system::FOR_TESTS)?;
    shell::run(&mut example("undercroft-nbd", "soak_nbd", &[&arguments.breaks, &arguments.seed]))
}

/// Builds random trees in random formats and has the judges look at each image; needs root.
pub(crate) fn build(arguments: &BuildArguments) -> Result<()> {
    shell::run(&mut example("undercroft-image", "soak_build", &[&arguments.count, &arguments.seed]))
}

/// Build a volume of a container image.
#[derive(Args)]
pub(crate) struct LayersArguments {
    /// Directory for the Debian, the image and the volumes; the Debian there is used again
    #[arg(long)]
    work: Option<PathBuf>,
}

/// Packages of the second layer, which the third removes again; they need no others, in this order.
const LAYER_PACKAGES: [&str; 3] = ["less", "libncursesw6", "nano"];

/// Packs a small Debian as four layers with umoci and compares our volume of each stack of them with
/// what umoci unpacks. Needs root and the machine's Debian mirror.
pub(crate) fn layers(arguments: &LayersArguments) -> Result<()> {
    let work = arguments.work.clone().unwrap_or_else(|| workspace::target("soak-layers"));
    let root = debian::bootstrap(&work)?;
    system::install(system::FOR_TESTS)?;
    system::install(system::FOR_LAYERS)?;
    let mut packages = Vec::new();
    for package in LAYER_PACKAGES {
        let directory = work.join("packages").join(package);
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        packages.push(system::download_package(package, &directory)?);
    }
    let mut soak = example("undercroft-image", "soak_layers", &[]);
    shell::run(soak.arg(root).arg(work.join("image")).args(packages))
}

/// Replay volumes that the kernel left dirty.
#[derive(Args)]
pub(crate) struct RecoveryArguments {
    /// Number of volumes
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Seed of the first; the others follow it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Has the kernel leave volumes dirty under load, and compares its replay with ours; needs root.
pub(crate) fn recovery(arguments: &RecoveryArguments) -> Result<()> {
    shell::run(&mut example(
        "undercroft-xfs",
        "soak_recovery",
        &[&arguments.count, &arguments.seed],
    ))
}

/// Fuzzes each target and fails when one of them found something. Everything that is fuzzed is safe
/// Rust, so no sanitizer is needed, and the stable compiler will do.
pub(crate) fn fuzz(arguments: &FuzzArguments) -> Result<()> {
    if shell::find("cargo-fuzz").is_none() {
        shell::run(workspace::cargo().args(["install", "cargo-fuzz", "--locked"]))?;
    }
    let targets = fuzz_targets()?;
    if let Some(name) = arguments.only.iter().find(|name| !targets.contains(name)) {
        bail!("--only {name}: the targets are {}", targets.join(", "));
    }
    let seeds = workspace::root().join("fuzz/seeds");
    let mut make = workspace::cargo();
    make.args(["run", "--quiet", "--package", "undercroft-fuzz-targets", "--example", "seeds"]);
    shell::run(make.arg("--").arg(&seeds))?;
    let mut failed = Vec::new();
    for name in targets {
        if !arguments.only.is_empty() && !arguments.only.contains(&name) {
            continue;
        }
        let share = if name == "open_and_walk" { 4 } else { 1 };
        let seconds = arguments.seconds.saturating_mul(share);
        println!("==> fuzz {name}: {seconds} s");
        let mut command = workspace::cargo();
        command.args(["fuzz", "run", "--sanitizer", "none"]);
        // The caller's target directory is that of another build; cargo-fuzz has its own.
        command.env_remove("CARGO_TARGET_DIR").arg(&name);
        // What was found goes to the first.
        let corpora = [workspace::root().join("fuzz/corpus").join(&name), seeds.join(&name)];
        fs::create_dir_all(&corpora[0])?;
        command.args(corpora.iter().filter(|corpus| corpus.exists())).arg("--");
        command.arg(format!("-max_total_time={seconds}"));
        let longest = if name == "tar" { LONGEST_ARCHIVE } else { LONGEST_INPUT };
        command.args([format!("-max_len={longest}"), "-len_control=0".to_owned()]);
        command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command.arg(format!("-timeout={HANG_SECONDS}"));
        if let Err(error) = shell::run(&mut command) {
            println!("==> fuzz {name}: FAILED: {error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "{} found something; the inputs are in {}",
            failed.join(", "),
            workspace::root().join("fuzz/artifacts").display()
        );
    }
    Ok(())
}

/// Names of the fuzz targets: there is a program for each.
fn fuzz_targets() -> Result<Vec<String>> {
    let directory = workspace::root().join("fuzz/fuzz_targets");
    let unread = || format!("cannot read {}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).with_context(unread)? {
        let path = entry.with_context(unread)?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
