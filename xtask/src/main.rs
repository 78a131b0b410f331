//! Set-up and checks: `cargo xtask test` installs missing packages and runs every check.

#![forbid(unsafe_code)]

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod shell;
mod texts;

mod citations;
mod workspace;

mod packages;
mod public;
mod system;
mod tags;

mod book;
mod debian;
mod dist;
mod machine;
mod newest;

mod bench;
mod boot;
mod soak;
mod terminal;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use undercroft_judges::{composefs, load, xfsprogs};

/// Set-up and checks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install missing packages and run every check
    Test {
        /// Only this step; may be given several times
        #[arg(long, value_name = "STEP")]
        only: Vec<test::Step>,
    },
    /// Write the lists of public items under docs/public anew
    Public,
    /// Make the book, in target/book/html, and check its links
    Book,
    /// Draw the terminal of the first page, docs/terminal.svg, from a real run
    Terminal(terminal::TerminalArguments),
    /// Make what users install, in target/dist: binaries, archives, packages
    Dist(dist::DistArguments),
    /// Measure against other tools
    Bench(bench::Arguments),
    /// Look for defects for as long as wanted
    #[command(subcommand)]
    Soak(Soak),
    /// Set up the newest xfsprogs beside the system's own and print where they are
    Judges {
        /// Fetch them again even when they are there
        #[arg(long)]
        refresh: bool,
    },
}

#[derive(Subcommand)]
enum Soak {
    /// Damaged and random input for every decoder and for whole volumes
    Fuzz(soak::FuzzArguments),
    /// Random trees in random formats, each image judged
    Build(soak::BuildArguments),
    /// Random volumes of random formats made smaller, judged, filled and grown again
    Shrink(soak::ShrinkArguments),
    /// The same cut off by crashes: the volume is whole, of the old size or the new one
    ShrinkCuts(soak::ShrinkCutsArguments),
    /// Random allocations and frees with every variant of the allocator, against a model
    Alloc(soak::AllocArguments),
    /// Random operations on files in every format, mirrored on a kernel mount
    Ops(soak::OpsArguments),
    /// Random operations on the data of files, against memory and against the kernel
    Data(soak::DataArguments),
    /// Random operations cut off by crashes at random points, each replayed
    Crash(soak::CrashArguments),
    /// Volumes on RAID, LVM and LUKS of a kernel in QEMU, read, changed, and seen by it again
    Managers(soak::ManagersArguments),
    /// Eight threads use volumes as a server does, every byte known
    Serve(soak::ServeArguments),
    /// Directory blocks of several pages cut off while they are written: the kernel mounts them
    Torn(soak::TornArguments),
    /// Change volumes with mutated metadata: no verb may hang, panic, or write over other files
    Mutations(soak::MutationsArguments),
    /// Damaged volumes repaired, as often as is asked, against xfs_repair on a copy
    Repair(soak::RepairArguments),
    /// Random volumes with random features turned on and off, and upgrades that are cut
    Upgrade(soak::UpgradeArguments),
    /// Volumes with one wrong field: our check and `xfs_repair -n` must agree
    Check(soak::CheckArguments),
    /// The same cut off by crashes: what answered tickets cover is there
    ServeCrash(soak::ServeCrashArguments),
    /// Tags for many threads: no waiter may be left asleep
    Tags(tags::TagsArguments),
    /// Larger models of the tag bitmap
    Models(tags::ModelsArguments),
    /// A driver that fails at random: no bio is lost or answered twice
    Block(soak::BlockArguments),
    /// Servers of network disks killed and connections cut: no answered flush is lost
    Nbd(soak::NbdArguments),
    /// A Ceph cluster behind an export, whose parts are killed under a load
    NbdCeph(soak::CephArguments),
    /// xfstests, the suite of Linux' file systems, on mounts
    Fstests(soak::FstestsArguments),
    /// The test client of the reference server (source package `nbd`) at our server
    NbdTester(soak::TesterArguments),
    /// libnbd's interoperability tests at our server of network disks
    NbdInterop(soak::InteropArguments),
    /// Replay volumes that the kernel left dirty
    Recovery(soak::RecoveryArguments),
    /// A small Debian on a disk that `build` made, started in QEMU
    Disk(boot::DiskArguments),
    /// What `dist` makes: the same bytes twice, installed, run on other systems
    Dist(soak::DistArguments),
    /// Every crate as it would be published, and the oldest compiler
    Publish(soak::PublishArguments),
    /// A container image of a small Debian, in layers: what others unpack is in our volume
    Layers(soak::LayersArguments),
    /// Suites of others on a mount of ours
    Mount(soak::MountArguments),
    /// Servers of mounts killed under load: what was synced is there
    MountKill(soak::KillArguments),
    /// All tests, with the many rounds that the check leaves out
    Tests,
}

fn main() -> ExitCode {
    // This program is also the processes of a load.
    let done = match load::work_if_asked() {
        Ok(true) => Ok(()),
        Ok(false) => run(&Arguments::parse()),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.task {
        Task::Test { only } => test::run(only),
        Task::Public => public::write(),
        Task::Book => {
            println!("{}", book::make()?.display());
            Ok(())
        }
        Task::Terminal(arguments) => terminal::write(arguments),
        Task::Dist(arguments) => dist::run(arguments),
        Task::Bench(arguments) => bench::run(arguments),
        Task::Soak(Soak::Fuzz(arguments)) => soak::fuzz(arguments),
        Task::Soak(Soak::Build(arguments)) => soak::build(arguments),
        Task::Soak(Soak::Shrink(arguments)) => soak::shrink(arguments),
        Task::Soak(Soak::ShrinkCuts(arguments)) => soak::shrink_cuts(arguments),
        Task::Soak(Soak::Alloc(arguments)) => soak::alloc(arguments),
        Task::Soak(Soak::Ops(arguments)) => soak::ops(arguments),
        Task::Soak(Soak::Data(arguments)) => soak::data(arguments),
        Task::Soak(Soak::Crash(arguments)) => soak::crash(arguments),
        Task::Soak(Soak::Managers(arguments)) => soak::managers(arguments),
        Task::Soak(Soak::Serve(arguments)) => soak::serve(arguments),
        Task::Soak(Soak::Torn(arguments)) => soak::torn(arguments),
        Task::Soak(Soak::Mutations(arguments)) => soak::mutations(arguments),
        Task::Soak(Soak::Repair(arguments)) => soak::repair(arguments),
        Task::Soak(Soak::Upgrade(arguments)) => soak::upgrade(arguments),
        Task::Soak(Soak::Check(arguments)) => soak::check(arguments),
        Task::Soak(Soak::ServeCrash(arguments)) => soak::serve_crash(arguments),
        Task::Soak(Soak::Tags(arguments)) => tags::soak(arguments),
        Task::Soak(Soak::Models(arguments)) => tags::soak_models(arguments),
        Task::Soak(Soak::Block(arguments)) => soak::block(arguments),
        Task::Soak(Soak::Nbd(arguments)) => soak::nbd(arguments),
        Task::Soak(Soak::NbdCeph(arguments)) => soak::nbd_ceph(arguments),
        Task::Soak(Soak::NbdTester(arguments)) => soak::nbd_tester(arguments),
        Task::Soak(Soak::Fstests(arguments)) => soak::fstests(arguments),
        Task::Soak(Soak::NbdInterop(arguments)) => soak::nbd_interop(arguments),
        Task::Soak(Soak::Recovery(arguments)) => soak::recovery(arguments),
        Task::Soak(Soak::Disk(arguments)) => boot::disk(arguments),
        Task::Soak(Soak::Dist(arguments)) => soak::dist(arguments),
        Task::Soak(Soak::Publish(arguments)) => soak::publish(arguments),
        Task::Soak(Soak::Layers(arguments)) => soak::layers(arguments),
        Task::Soak(Soak::Mount(arguments)) => soak::mount(arguments),
        Task::Soak(Soak::MountKill(arguments)) => soak::mount_kill(arguments),
        Task::Soak(Soak::Tests) => test::soak(),
        Task::Judges { refresh } => judges(*refresh),
    }
}

fn judges(refresh: bool) -> Result<()> {
    newest::install_composefs(refresh)?;
    println!("{}", composefs::newest_directory().join("bin").display());
    let newest = newest::install(refresh)?;
    let (major, minor) = newest.version();
    println!("xfsprogs {major}.{minor}");
    for name in xfsprogs::TOOLS {
        println!("{}", newest.tool(name)?.display());
    }
    Ok(())
}
