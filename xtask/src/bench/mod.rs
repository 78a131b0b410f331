//! `cargo xtask bench`: our programs side by side with others on the same work in one run.

mod build;
mod comparison;
mod layers;
mod live;
mod mount;
mod nbd;
mod peers;
mod prototype;
mod record;
mod recover;
mod repair;
mod shared;
mod shrink;
mod source;
mod turns;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, FromArgMatches, Subcommand};

use crate::workspace;
use comparison::{Comparison, tables};
use record::Chapter;

/// What to measure.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Keep the outcome in docs/measurements.json, and make docs/measurements.md anew
    #[arg(long, global = true)]
    record: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Everything below as it is without options; about an hour
    All,
    #[command(flatten)]
    One(Bench),
}

#[derive(Subcommand)]
enum Bench {
    /// How fast a tree becomes an image
    Build(build::BuildArguments),
    /// How fast empty files come and go, against the kernel on a copy of the image
    Meta(live::MetaArguments),
    /// How fast a full journal is replayed, against the kernel on a copy of the image
    Replay(live::ReplayArguments),
    /// Blocks shared with the source, against `cat` of the same bytes
    Reflink(shared::ReflinkArguments),
    /// How fast a volume is made smaller, against a dump and a new volume
    Shrink(shrink::ShrinkArguments),
    /// What comes back from damaged volumes, against xfs_repair on a copy
    Recover(recover::RecoverArguments),
    /// What damaged volumes are after a repair, against xfs_repair
    Repair(recover::RecoverArguments),
    /// How fast our mount is, against a null server, the kernel and other mounts
    Mount(mount::MountArguments),
    /// How fast our server and our client of network disks are, against nbdkit, qemu-nbd and fio
    Nbd(nbd::NbdArguments),
}

/// Measures, and prints tables.
pub(crate) fn run(Arguments { record, what }: &Arguments) -> Result<()> {
    match what {
        What::One(bench) => measure(bench, *record),
        What::All => Bench::all()?.iter().try_for_each(|bench| measure(bench, *record)),
    }
}

fn measure(bench: &Bench, keep: bool) -> Result<()> {
    let [name, title, about] = bench.words();
    ensure!(
        !(keep && bench.is_part()),
        "--record keeps whole runs: ask for all rows, or leave out --record"
    );
    let comparisons = bench.comparisons().with_context(|| format!("cargo xtask bench {name}"))?;
    println!("{}", tables(&comparisons));
    if keep {
        record::keep(Chapter::new(name, title, about, comparisons)?)?;
    }
    Ok(())
}

impl Bench {
    /// Whether some of its rows were asked for, which cannot take the place of all of them.
    fn is_part(&self) -> bool {
        match self {
            Self::Build(arguments) => arguments.is_part(),
            Self::Mount(arguments) => arguments.is_part(),
            Self::Nbd(arguments) => arguments.is_part(),
            Self::Meta(_)
            | Self::Replay(_)
            | Self::Reflink(_)
            | Self::Shrink(_)
            | Self::Recover(_)
            | Self::Repair(_) => false,
        }
    }

    /// All of them, without options.
    fn all() -> Result<Vec<Self>> {
        let command = Self::augment_subcommands(clap::Command::new("bench"));
        let names: Vec<String> =
            command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
        let parsed = |name: &String| {
            Ok(Self::from_arg_matches(&command.clone().try_get_matches_from(["bench", name])?)?)
        };
        names.iter().map(parsed).collect()
    }

    fn comparisons(&self) -> Result<Vec<Comparison>> {
        match self {
            Self::Build(arguments) => build::build(arguments),
            Self::Meta(arguments) => live::meta(arguments),
            Self::Replay(arguments) => live::replay(arguments),
            Self::Reflink(arguments) => shared::reflink(arguments),
            Self::Shrink(arguments) => shrink::shrink(arguments),
            Self::Recover(arguments) => recover::recover(arguments),
            Self::Repair(arguments) => repair::repair(arguments),
            Self::Mount(arguments) => mount::run(arguments),
            Self::Nbd(arguments) => nbd::nbd(arguments),
        }
    }

    /// Its name, and the title and the first sentences of its chapter.
    fn words(&self) -> [&'static str; 3] {
        match self {
            Self::Build(_) => [
                "build",
                "A tree becomes an image",
                "The source is in the page cache; images are on disk, not synced.",
            ],
            Self::Meta(_) => [
                "meta",
                "Empty files",
                "Our engine by its calls and the kernel's XFS by system calls, on copies of one \
                 image, without fsync.",
            ],
            Self::Replay(_) => [
                "replay",
                "Replay of a full journal",
                "Copies of a volume that the kernel gave up; the kernel's time is that of its mount.",
            ],
            Self::Reflink(_) => [
                "reflink",
                "Blocks shared with the source",
                "On the kernel's XFS: an image whose files share blocks with the source, and the \
                 same bytes copied into one file.",
            ],
            Self::Shrink(_) => [
                "shrink",
                "A volume made smaller",
                "The kernel unpacked the tree. Ours works in place; the others make a new volume \
                 of the mounted one.",
            ],
            Self::Recover(_) => [
                "recover",
                "What comes back from damaged volumes",
                "The kernel made the volume. Right are files with the path and the content that they \
                 had; `xfs_repair -L` mended a copy, which the kernel mounted.",
            ],
            Self::Repair(_) => [
                "repair",
                "Damaged volumes repaired",
                "The kernel made the volume, and mounted what each repair left. Right are files with the \
                 path and the content that they had; `xfs_repair -L` repaired a copy.",
            ],
            Self::Mount(_) => [
                "mount",
                "A mount",
                "`null` is a server that answers at once, on the same library: the price of the \
                 protocol; `null-cached` lets the kernel keep names and attributes.",
            ],
            Self::Nbd(_) => [
                "nbd",
                "Network disks",
                "Servers of a file in memory and of memory, with fio's NBD engine as the client at a \
                 socket of the same machine; then our client beside fio's at nbdkit. The CPU time is \
                 that of the server, and of the client where clients are compared.",
            ],
        }
    }
}

/// The directory for images that was asked for, or that of the build.
fn working_directory(work: Option<&PathBuf>) -> Result<PathBuf> {
    let work = work.cloned().unwrap_or_else(|| workspace::target("bench"));
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work)
}
