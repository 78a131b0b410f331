//! `undercroft unmount`.

use crate::mounts::status_of;
use crate::report::Outcome;
use anyhow::{Context, Result, bail};
use clap::ValueHint;
use rustix::io::Errno;
use std::io::Write;
use std::path::{Path, PathBuf};
use undercroft_fuse::{EndOfServer, Ended, InUse, unmount};

/// Unmount a volume; returns when its journal is clean and the image free.
///
/// For example: undercroft mount root.img /mnt/xfs && undercroft unmount /mnt/xfs
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Directory that the volume is mounted at.
    #[arg(value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// If programs use it: let no new ones in, and wait until those have ended.
    #[arg(short, long)]
    lazy: bool,
}

pub(super) fn run(args: &Args, _: &mut dyn Write) -> Result<Outcome> {
    let at = args.directory.display();
    let status = match status_of(&args.directory) {
        Ok(status) => status,
        Err(Errno::NOTCONN) => {
            // The kernel has the mount, but its server has gone.
            unmount(&args.directory, InUse::Detach)?;
            eprintln!(
                "note: the server of {at} had ended before it was unmounted; the volume is not clean, \
                 and the next mount replays its journal (so does `undercroft replay`)"
            );
            return Ok(Outcome::Done);
        }
        Err(error) => return Err(error).with_context(|| no_mount(&args.directory)),
    };
    let directory = args.directory.canonicalize().with_context(|| no_mount(&args.directory))?;
    let end = EndOfServer::of(&status.socket).with_context(|| {
        format!(
            "the server of {at} is not in this network name space: unmount it there, or with umount"
        )
    })?;
    unmount(&directory, if args.lazy { InUse::Detach } else { InUse::Refuse })?;
    match end.wait() {
        Ended::Clean => Ok(Outcome::Done),
        Ended::Failed(why) => bail!("{} was unmounted, but is not clean: {why}", status.image),
        Ended::Gone => bail!(
            "the server of {at} ended without a word; if the volume is not clean, the next mount \
             replays its journal"
        ),
    }
}

fn no_mount(directory: &Path) -> String {
    format!("{} is not the root of a volume that undercroft has mounted", directory.display())
}
