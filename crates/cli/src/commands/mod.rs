//! The subcommands, one a file. Those that work on an open volume are verbs ([`verb`]): a shell has
//! them as well.

mod build;
mod cat;
mod check;
mod chmod;
mod chown;
mod clone;
mod completions;
mod dedupe;
mod extract;
mod extsize;
mod fallocate;
mod frag;
mod get;
mod getacl;
mod getxattr;
mod grow;
mod info;
mod lab;
mod label;
mod ln;
mod ls;
mod man;
mod mkdir;
mod mkfs;
mod mknod;
mod mv;
mod put;
mod replay;
mod resync;
mod rm;
mod rmxattr;
mod set;
mod setacl;
mod setxattr;
mod shell;
mod stat;
mod sync;
mod touch;
mod truncate;
mod verb;

use crate::image::ImageArgs;
use crate::report::Outcome;
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::io::{self, BufWriter, Write};
use verb::OnImage;

/// XFS volumes in image files and on disks: build, read, check. No root, no mount.
#[derive(Parser)]
#[command(name = "undercroft", version, propagate_version = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  undercroft build rootfs/ root.img                    a directory becomes a volume
  zcat layer.tar.gz | undercroft build - root.img      so does a tar stream
  undercroft ls -lR root.img /etc                      look inside
  undercroft cat --partition 2 disk.img /etc/fstab     also inside a disk image
  undercroft extract root.img - | tar tv               everything as a tar stream
  undercroft put root.img motd /etc/motd               change a volume, through its journal
  undercroft shell root.img < script                   many changes at once
  undercroft build rootfs/ 'stripe:64k(a.img,b.img)'   a volume across files
  undercroft lab tags --case depth                     repeat an experiment

Exit status: 0 done; 1 it failed, or `check` found faults; 2 wrong usage.";

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Mkfs(mkfs::Args),
    Info(info::Args),
    #[command(flatten)]
    Verb(OnImage),
    Shell(shell::Args),
    Extract(extract::Args),
    Check(check::Args),
    Replay(replay::Args),
    Resync(resync::Args),
    Grow(grow::Args),
    Set(set::Args),
    Frag(frag::Args),
    Lab(lab::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// The image that the command reads, and whether it prints JSON.
    fn image(&self) -> Option<(&ImageArgs, bool)> {
        match self {
            Self::Info(args) => Some((&args.image, args.json)),
            Self::Verb(verb) => Some(verb.image()),
            Self::Shell(args) => Some((&args.image, false)),
            Self::Extract(args) => Some((&args.image, args.json && !args.is_archive())),
            Self::Check(args) => Some((&args.image, args.json)),
            Self::Replay(args) => Some((&args.image, args.json)),
            Self::Grow(args) => Some((&args.image, args.json)),
            Self::Set(args) => Some((&args.image, args.json)),
            Self::Frag(args) => Some((&args.image, args.json)),
            Self::Build(_)
            | Self::Mkfs(_)
            | Self::Resync(_)
            | Self::Lab(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }
}

/// Runs the command; output is complete when it returns.
pub(crate) fn run(cli: &Cli) -> Result<Outcome> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let out_ref: &mut dyn Write = &mut out;
    let outcome = match &cli.command {
        Command::Build(args) => build::run(args, out_ref),
        Command::Mkfs(args) => mkfs::run(args, out_ref),
        Command::Info(args) => info::run(args, out_ref),
        Command::Verb(verb) => verb.run(out_ref),
        Command::Shell(args) => shell::run(args, out_ref),
        Command::Extract(args) => extract::run(args, out_ref),
        Command::Check(args) => check::run(args, out_ref),
        Command::Replay(args) => replay::run(args, out_ref),
        Command::Resync(args) => resync::run(args, out_ref),
        Command::Grow(args) => grow::run(args, out_ref),
        Command::Set(args) => set::run(args, out_ref),
        Command::Frag(args) => frag::run(args, out_ref),
        Command::Lab(args) => lab::run(args, out_ref),
        Command::Completions(args) => completions::run(args, out_ref),
        Command::Man(args) => man::run(args, out_ref),
    }?;
    if let Some((image, json)) = cli.command.image() {
        image.print_stats(json, out_ref)?;
    }
    out.flush()?;
    Ok(outcome)
}
