//! `undercroft deleted`.

mod filter;
mod search;

use super::found::{FoundJson, print_found, print_paths};
use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use anyhow::Result;
pub(super) use filter::{FilterArgs, Selection};
pub(super) use search::{Found, disk, look, search, show};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;

/// List the files that were removed from a volume.
///
/// Nothing is written. Names, sizes, owners and times come from inodes that are free, from the
/// journal and from free space. The state of each file says what became of its blocks since:
///
///   whole    they belong to no one, and no one is known to have had them since
///   shared   as whole, but for blocks that a clone has, which was not changed since
///   likely   as whole, but a file that came and went since may have had some of them
///   unsized  as whole, but nothing confirms which blocks it had last (a ~ before a size that
///            is not known)
///   partly   some were overwritten, or are not known
///   lost     nothing of the content is known
///
/// Stop writing to the volume first: every new file may take the place of one that was removed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Only this file, or the files that were in this directory: a path from the root directory of the volume.
    path: Option<OsString>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Print paths alone, each with a byte of zero behind it, for `xargs -0`.
    #[arg(short = '0', long = "null", conflicts_with = "json")]
    null: bool,

    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft deleted disk.img                           all of them
  undercroft deleted disk.img /home/ann --state whole   what is whole of one directory
  undercroft deleted disk.img --name '*.jpg' --larger 1M
  undercroft undelete disk.img /home/ann rescued        copy them out";

/// All of the search as JSON.
#[derive(Serialize)]
struct Report {
    files: Vec<FoundJson>,
    unreadable_inodes: u64,
    unreadable_sectors: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let Found { removed, .. } = search(&args.image)?;
    let selection = args.filter.selection(args.path.as_deref().into_iter())?;
    let files = removed.files.iter().filter(|file| selection.takes(file));
    if args.json {
        let report = Report {
            files: files.map(FoundJson::new).collect(),
            unreadable_inodes: removed.unreadable_inodes,
            unreadable_sectors: removed.unreadable_sectors,
        };
        report::json_line(out, &report)?;
        return Ok(Outcome::Done);
    }
    for file in files {
        if args.null {
            print_paths(file, out)?;
        } else {
            print_found(file, file.removed_at, out)?;
        }
    }
    Ok(Outcome::Done)
}
