//! The subcommands, one a file.

mod build;
mod cat;
mod check;
mod completions;
mod extract;
mod frag;
mod info;
mod lab;
mod ls;
mod man;
mod mkfs;
mod replay;
mod stat;

use crate::image::ImageArgs;
use crate::report::Outcome;
use anyhow::Result;
use clap::{Parser, Subcommand};
use std::io::{self, BufWriter, Write};

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
  undercroft build rootfs/ 'stripe:64k(a.img,b.img)'   a volume across files
  undercroft lab tags --case depth                     repeat an experiment

Exit status: 0 done; 1 it failed, or `check` found faults; 2 wrong usage.";

#[derive(Subcommand)]
enum Command {
    Build(build::Args),
    Mkfs(mkfs::Args),
    Info(info::Args),
    Ls(ls::Args),
    Stat(stat::Args),
    Cat(cat::Args),
    Extract(extract::Args),
    Check(check::Args),
    Replay(replay::Args),
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
            Self::Ls(args) => Some((&args.image, args.json)),
            Self::Stat(args) => Some((&args.image, args.json)),
            // Standard output is for contents.
            Self::Cat(args) => Some((&args.image, false)),
            Self::Extract(args) => Some((&args.image, args.json && !args.is_archive())),
            Self::Check(args) => Some((&args.image, args.json)),
            Self::Replay(args) => Some((&args.image, args.json)),
            Self::Frag(args) => Some((&args.image, args.json)),
            Self::Build(_) | Self::Mkfs(_) | Self::Lab(_) | Self::Completions(_) | Self::Man(_) => {
                None
            }
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
        Command::Ls(args) => ls::run(args, out_ref),
        Command::Stat(args) => stat::run(args, out_ref),
        Command::Cat(args) => cat::run(args, out_ref),
        Command::Extract(args) => extract::run(args, out_ref),
        Command::Check(args) => check::run(args, out_ref),
        Command::Replay(args) => replay::run(args, out_ref),
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
