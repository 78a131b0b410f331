//! The subcommands, one a file. Subcommands that work on an open volume are verbs ([`verbs`]): a
//! shell has them as well.

mod build;
mod check;
mod completions;
mod convert;
mod copy;
mod deleted;
mod describe;
mod diff;
mod disks;
mod extract;
mod found;
mod frag;
mod fsck;
mod grow;
mod info;
#[cfg(feature = "lab")]
mod lab;
mod man;
mod minimise;
mod mkfs;
mod mount;
mod repair;
mod replay;
mod resync;
mod salvage;
#[cfg(feature = "network")]
mod serve;
mod set;
mod shell;
mod shrink;
mod status;
#[cfg(feature = "objects")]
mod store;
mod timeline;
mod trim;
mod undelete;
mod unmount;
mod upgrade;
mod verbs;
mod warnings;

use crate::deferred::Deferred;
use crate::image::ImageArgs;
use crate::report::Outcome;
use crate::standard_output::StandardOutput;
use anyhow::{Result, anyhow};
use clap::{CommandFactory, Parser, Subcommand};
use std::io::{self, BufWriter, Write};
#[cfg(feature = "objects")]
use store::{fetch, prune, publish, verify};
use verbs::OnImage;

/// XFS volumes in image files and on disks: build, read, change, mount, check. No root needed.
#[derive(Parser)]
#[command(name = "undercroft", version, propagate_version = true, after_help = examples())]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  undercroft build rootfs/ root.img                    a directory becomes a volume
  zcat layer.tar.gz | undercroft build - root.img      so does a tar stream
  undercroft ls -lR root.img /etc                      look inside
  undercroft disks disk.img                            what a disk image holds
  undercroft cat --partition 2 disk.img /etc/fstab     also inside a disk image
  undercroft extract root.img - | tar tv               everything as a tar stream
  undercroft diff root.img layer.tar.gz                compare it with its source
  undercroft put root.img motd /etc/motd               change a volume, through its journal
  undercroft shell root.img < script                   many changes at once
  undercroft mount root.img --exec ls -l etc           for every program, as a mounted volume
  undercroft serve disk.img --exec sh -c 'nbdinfo $NBD_URI'   as a network disk
  undercroft publish root.img s3://bucket/images@v1   to an object store, for many hosts
  undercroft build rootfs/ 'stripe:64k(a.img,b.img)'   a volume across files
  undercroft lab tags --case depth                     repeat an experiment

Sizes are bytes, or numbers, also 1.5, with K, M, G, T, P, E (powers of 1024, as KiB is)
or KB, MB, GB ... (powers of 1000).

Exit status: 0 done; 1 it failed, or `check` found faults; 2 wrong usage, a value that cannot be.
`diff` ends as diff(1) does: 0 the same, 1 different, 2 it failed; `fsck` as fsck(8) does.";

/// The examples, of commands that there are.
fn examples() -> String {
    let is_there = |line: &&str| {
        (cfg!(feature = "network") || !line.starts_with("  undercroft serve "))
            && (cfg!(feature = "objects") || !line.starts_with("  undercroft publish "))
            && (cfg!(feature = "lab") || !line.starts_with("  undercroft lab "))
    };
    EXAMPLES.split_inclusive('\n').filter(is_there).collect()
}

#[derive(Subcommand)]
enum Command {
    Build(Deferred<build::Args>),
    Mkfs(Deferred<mkfs::Args>),
    Info(Deferred<info::Args>),
    Disks(Deferred<disks::Args>),
    Convert(Deferred<convert::Args>),
    #[command(flatten)]
    Verb(Box<OnImage>),
    Copy(Deferred<copy::Args>),
    Shell(Deferred<shell::Args>),
    Mount(Deferred<mount::Args>),
    #[command(visible_alias = "umount")]
    Unmount(Deferred<unmount::Args>),
    Status(Deferred<status::Args>),
    #[cfg(feature = "network")]
    Serve(Deferred<serve::Args>),
    #[cfg(feature = "objects")]
    Publish(Deferred<publish::Args>),
    #[cfg(feature = "objects")]
    Fetch(Deferred<fetch::Args>),
    #[cfg(feature = "objects")]
    Verify(Deferred<verify::Args>),
    #[cfg(feature = "objects")]
    Prune(Deferred<prune::Args>),
    Extract(Deferred<extract::Args>),
    Describe(Deferred<describe::Args>),
    Diff(Deferred<diff::Args>),
    Check(Deferred<check::Args>),
    Replay(Deferred<replay::Args>),
    Repair(Deferred<repair::Args>),
    Fsck(Deferred<fsck::Args>),
    Deleted(Deferred<deleted::Args>),
    Undelete(Deferred<undelete::Args>),
    Salvage(Deferred<salvage::Args>),
    Timeline(Deferred<timeline::Args>),
    Resync(Deferred<resync::Args>),
    Grow(Deferred<grow::Args>),
    Shrink(Deferred<shrink::Args>),
    #[command(visible_alias = "minimize")]
    Minimise(Deferred<minimise::Args>),
    Trim(Deferred<trim::Args>),
    Set(Deferred<set::Args>),
    Upgrade(Deferred<upgrade::Args>),
    Frag(Deferred<frag::Args>),
    #[cfg(feature = "lab")]
    Lab(Deferred<lab::Args>),
    Completions(Deferred<completions::Args>),
    Man(Deferred<man::Args>),
}

impl Command {
    /// The image that the command reads, and whether it prints JSON.
    fn image(&self) -> Option<(&ImageArgs, bool)> {
        match self {
            Self::Info(args) => Some((&args.image, args.json)),
            Self::Verb(verb) => Some(verb.image()),
            Self::Shell(args) => Some((&args.image, args.json)),
            Self::Extract(args) => Some((&args.image, args.json && !args.is_archive())),
            Self::Check(args) => Some((&args.image, args.json)),
            Self::Replay(args) => Some((&args.image, args.json)),
            Self::Repair(args) => Some((&args.image, args.json)),
            Self::Fsck(args) => Some((&args.image, args.json)),
            Self::Deleted(args) => Some((&args.image, args.json)),
            Self::Undelete(args) => Some((&args.image, args.json && !args.is_archive())),
            Self::Salvage(args) => Some((&args.image, args.json && !args.is_archive())),
            Self::Timeline(args) => Some((&args.image, args.json)),
            Self::Grow(args) => Some((&args.image, args.json)),
            Self::Shrink(args) => Some((&args.image, args.json)),
            Self::Minimise(args) => Some((&args.image, args.json)),
            Self::Trim(args) => Some((&args.image, args.json)),
            Self::Set(args) => Some((&args.image, args.json)),
            Self::Upgrade(args) => Some((&args.image, args.json)),
            Self::Frag(args) => Some((&args.image, args.json)),
            Self::Mount(args) => Some((&args.image, args.json)),
            Self::Build(_)
            | Self::Convert(_)
            | Self::Copy(_)
            | Self::Diff(_)
            | Self::Disks(_)
            | Self::Mkfs(_)
            | Self::Unmount(_)
            | Self::Status(_)
            | Self::Describe(_)
            | Self::Resync(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
            #[cfg(feature = "lab")]
            Self::Lab(_) => None,
            #[cfg(feature = "network")]
            Self::Serve(_) => None,
            #[cfg(feature = "objects")]
            Self::Publish(_) | Self::Fetch(_) | Self::Verify(_) | Self::Prune(_) => None,
        }
    }
}

/// Exit status of wrong usage of the command with these arguments, where it is not the usual one.
pub(crate) fn usage_status(arguments: &[std::ffi::OsString]) -> Option<u8> {
    let command = arguments.get(1);
    command.filter(|it| *it == "fsck" || *it == "repair").map(|_| fsck::WRONG_USAGE)
}

impl Cli {
    /// Exit status of a run that failed, where it is not the usual one.
    pub(crate) fn failure_status(&self) -> Option<u8> {
        match self.command {
            Command::Diff(_) => Some(diff::TROUBLE),
            Command::Fsck(_) | Command::Repair(_) => Some(fsck::TROUBLE),
            _ => None,
        }
    }
}

/// Runs the command; output is complete when it returns.
pub(crate) fn run(cli: &Cli) -> Result<Outcome> {
    let mut out = BufWriter::with_capacity(1 << 16, StandardOutput::new());
    let done = dispatch(&cli.command, &mut out);
    let told = if done.is_ok() { print_stats(&cli.command, &mut out) } else { Ok(()) };
    let told = told.and_then(|()| Ok(out.flush()?));
    let Some(failure) = out.get_ref().failure() else {
        return done.and_then(|outcome| told.map(|()| outcome));
    };
    if failure.kind() != io::ErrorKind::BrokenPipe {
        let why = io::Error::new(failure.kind(), failure.to_string());
        return Err(anyhow!(why).context("cannot write to standard output"));
    }
    // A reader of the first lines closes the pipe before the last. Lines of a shell that are left undone
    // are another matter.
    match (done, &cli.command) {
        (Ok(outcome @ Outcome::Findings), _) => Ok(outcome),
        (_, Command::Shell(_)) => Ok(Outcome::Cut),
        _ => Ok(Outcome::Done),
    }
}

fn dispatch(command: &Command, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        Command::Build(args) => build::run(args, out),
        Command::Mkfs(args) => mkfs::run(args, out),
        Command::Info(args) => info::run(args, out),
        Command::Disks(args) => disks::run(args, out),
        Command::Convert(args) => convert::run(args, out),
        Command::Verb(verb) => verb.run(out),
        Command::Copy(args) => copy::run(args, out),
        Command::Shell(args) => shell::run(args, out),
        Command::Mount(args) => mount::run(args, out),
        Command::Unmount(args) => unmount::run(args, out),
        Command::Status(args) => status::run(args, out),
        #[cfg(feature = "network")]
        Command::Serve(args) => serve::run(args, out),
        #[cfg(feature = "objects")]
        Command::Publish(args) => publish::run(args, out),
        #[cfg(feature = "objects")]
        Command::Fetch(args) => fetch::run(args, out),
        #[cfg(feature = "objects")]
        Command::Verify(args) => verify::run(args, out),
        #[cfg(feature = "objects")]
        Command::Prune(args) => prune::run(args, out),
        Command::Extract(args) => extract::run(args, out),
        Command::Describe(args) => describe::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Replay(args) => replay::run(args, out),
        Command::Repair(args) => repair::run(args, out),
        Command::Fsck(args) => fsck::run(args, out),
        Command::Deleted(args) => deleted::run(args, out),
        Command::Undelete(args) => undelete::run(args, out),
        Command::Salvage(args) => salvage::run(args, out),
        Command::Timeline(args) => timeline::run(args, out),
        Command::Resync(args) => resync::run(args, out),
        Command::Grow(args) => grow::run(args, out),
        Command::Shrink(args) => shrink::run(args, out),
        Command::Minimise(args) => minimise::run(args, out),
        Command::Trim(args) => trim::run(args, out),
        Command::Set(args) => set::run(args, out),
        Command::Upgrade(args) => upgrade::run(args, out),
        Command::Frag(args) => frag::run(args, out),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(args, out),
        Command::Completions(args) => completions::run(args, Cli::command(), out),
        Command::Man(args) => man::run(args, Cli::command(), out),
    }
}

fn print_stats(command: &Command, out: &mut dyn Write) -> Result<()> {
    command.image().map_or(Ok(()), |(image, json)| image.print_stats(json, out))
}
