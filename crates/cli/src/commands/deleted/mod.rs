//! `undercroft deleted`.

mod filter;
mod search;

use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::Result;
pub(super) use filter::FilterArgs;
pub(super) use search::{Found, search};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use undercroft_recover::{Path, RemovedFile, SizeFrom};
use undercroft_xfs::format::FileType;

/// List the files that were removed from a volume.
///
/// Nothing is written. Names, sizes, owners and times come from inodes that are free, from the
/// journal and from free space. The state of each file says what became of its blocks since:
///
///   whole    they belong to no one, and no one is known to have had them since
///   shared   as whole, but for blocks that a clone has, which was not changed since
///   unsized  as whole, but nothing tells how long the file was (a ~ before the size)
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

/// A removed file as JSON.
#[derive(Serialize)]
struct Json {
    paths: Vec<text::Name>,
    /// The first name of each path is a directory of the volume; else a number of one.
    complete: bool,
    inode: u64,
    generation: u32,
    kind: Option<&'static str>,
    state: &'static str,
    size: u64,
    size_from: &'static str,
    removed: Option<String>,
    modified: String,
    uid: u32,
    gid: u32,
    mode: Option<String>,
    lost: Vec<[u64; 2]>,
}

impl Json {
    fn new(file: &RemovedFile) -> Self {
        Self {
            paths: file.paths.iter().map(|path| text::Name::new(&joined(path))).collect(),
            complete: file.paths.first().is_some_and(|path| path.is_complete),
            inode: file.id.number.0,
            generation: file.id.generation,
            kind: file.kind.map(text::kind),
            state: file.state.name(),
            size: file.size,
            size_from: match file.size_from {
                SizeFrom::Inode => "inode",
                SizeFrom::Journal => "journal",
                SizeFrom::Blocks => "blocks",
            },
            removed: file.removed_at.map(text::time),
            modified: text::time(file.mtime),
            uid: file.uid,
            gid: file.gid,
            mode: file.mode.map(|mode| format!("{mode:04o}")),
            lost: file.losses.iter().map(|loss| [loss.start, loss.end]).collect(),
        }
    }
}

/// All of the search as JSON.
#[derive(Serialize)]
struct Report {
    files: Vec<Json>,
    unreadable_inodes: u64,
    unreadable_sectors: u64,
}

/// A path as one name.
pub(super) fn joined(path: &Path) -> Vec<u8> {
    let start: &[u8] = if path.is_complete { b"/" } else { b"?/" };
    [start, &path.names.join(&b'/')].concat()
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let Found { removed, .. } = search(&args.image)?;
    let selection = args.filter.selection(args.path.as_deref().into_iter())?;
    let files = removed.files.iter().filter(|file| selection.takes(file));
    if args.json {
        let report = Report {
            files: files.map(Json::new).collect(),
            unreadable_inodes: removed.unreadable_inodes,
            unreadable_sectors: removed.unreadable_sectors,
        };
        report::json_line(out, &report)?;
        return Ok(Outcome::Done);
    }
    for file in files {
        print(file, out)?;
    }
    Ok(Outcome::Done)
}

fn print(file: &RemovedFile, out: &mut dyn Write) -> Result<()> {
    let kind = file.kind.unwrap_or(FileType::Regular);
    let mode = file.mode.map_or_else(
        || format!("{}?????????", &text::mode(kind, 0)[..1]),
        |mode| text::mode(kind, mode),
    );
    let about = if file.size_from == SizeFrom::Blocks { "~" } else { "" };
    let size = format!("{about}{}", file.size);
    let time = file.removed_at.map_or("-".to_owned(), text::time);
    let time = time.split_once('.').map_or(time.as_str(), |(seconds, _)| seconds);
    write!(
        out,
        "{:<7}  {mode}  {:>5} {:>5}  {size:>12}  {time:>19} ",
        file.state.name(),
        file.uid,
        file.gid
    )?;
    if file.paths.is_empty() {
        write!(out, " ?/{}", file.id)?;
    }
    for path in &file.paths {
        write!(out, " {}", text::name(&joined(path)))?;
    }
    if let Some(target) = file.target() {
        write!(out, " -> {}", text::name(target))?;
    }
    Ok(writeln!(out)?)
}
