//! `undercroft du`.

use super::names::NameArgs;
use super::sizes::SizeArgs;
use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::Metadata;
use undercroft_xfs::units::InodeNumber;

/// The unit of sizes.
const KIBIBYTE: u64 = 1024;

/// Bytes of a block as `st_blocks` counts.
const BLOCK: u64 = 512;

/// Show the space that directories take with all that is in them, in KiB.
///
/// A file with several names is counted once. Blocks that clones share are counted for each of them.
/// * ? and [ ] in a path stand for names that are there.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "options as people know them")]
pub(crate) struct Args {
    /// Paths from the root directory of the volume, which is the one that is looked at by default.
    path: Vec<OsString>,

    /// Show the paths that are named alone, not what is below them.
    #[arg(short, long, conflicts_with_all = ["all", "max_depth"])]
    summarize: bool,

    #[command(flatten)]
    sizes: SizeArgs,

    /// Show files as well, not only directories.
    #[arg(short, long)]
    all: bool,

    /// Show directories so far below the paths that are named.
    #[arg(short = 'd', long, value_name = "N")]
    max_depth: Option<usize>,

    /// Count inodes, not space.
    #[arg(long)]
    inodes: bool,

    /// Count the bytes of files, not the space that they take.
    #[arg(long, conflicts_with = "inodes")]
    apparent_size: bool,

    /// Show the sum of all paths at the end.
    #[arg(short = 'c', long)]
    total: bool,

    #[command(flatten)]
    names: NameArgs,

    /// Print one JSON object a line, with bytes.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft du -sh root.img '/home/*'
  undercroft du -h -d 1 root.img /var | sort -h     the largest directories last";

/// What a tree takes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    inodes: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.inodes = self.inodes.saturating_add(other.inodes);
    }
}

/// A sum as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    bytes: u64,
    inodes: u64,
}

/// A directory whose contents are being counted.
struct Open {
    path: OsString,
    sum: Sum,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let (mut seen, mut total) = (HashSet::new(), Sum::default());
        for path in session.matching_or_here(&self.path)? {
            total.add(self.tree(session, &path, &mut seen, out)?);
        }
        if self.total {
            self.print(OsStr::new("total"), total, out)?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    /// Counts a tree, directories after all that is in them.
    fn tree(
        &self,
        session: &Session<'_>,
        path: &OsStr,
        seen: &mut HashSet<InodeNumber>,
        out: &mut dyn Write,
    ) -> Result<Sum> {
        let top = session.fs.symlink_metadata(path)?;
        if !top.is_dir() {
            let sum = self.count(&top, seen).unwrap_or_default();
            self.print(path, sum, out)?;
            return Ok(sum);
        }
        let mut open: Vec<Open> = Vec::new();
        for entry in session.fs.walk(path)? {
            let entry = entry?;
            while open.len() > entry.depth() {
                self.close(&mut open, out)?;
            }
            let Some(sum) = self.count(entry.metadata(), seen) else { continue };
            if entry.metadata().is_dir() {
                open.push(Open { path: entry.path().into(), sum });
                continue;
            }
            if self.all && self.is_shown(entry.depth()) {
                self.print(entry.path().as_os_str(), sum, out)?;
            }
            if let Some(above) = open.last_mut() {
                above.sum.add(sum);
            }
        }
        let mut whole = Sum::default();
        while let Some(sum) = self.close(&mut open, out)? {
            whole = sum;
        }
        Ok(whole)
    }

    /// Ends the last directory: what it takes.
    fn close(&self, open: &mut Vec<Open>, out: &mut dyn Write) -> Result<Option<Sum>> {
        let Some(Open { path, sum }) = open.pop() else { return Ok(None) };
        if self.is_shown(open.len()) {
            self.print(&path, sum, out)?;
        }
        if let Some(above) = open.last_mut() {
            above.sum.add(sum);
        }
        Ok(Some(sum))
    }

    fn is_shown(&self, depth: usize) -> bool {
        if self.summarize { depth == 0 } else { self.max_depth.is_none_or(|most| depth <= most) }
    }

    /// What a file takes by itself; `None` under a further name.
    fn count(&self, file: &Metadata, seen: &mut HashSet<InodeNumber>) -> Option<Sum> {
        if file.nlink > 1 && !file.is_dir() && !seen.insert(file.number) {
            return None;
        }
        let space = file.blocks.saturating_mul(BLOCK);
        Some(Sum { bytes: if self.apparent_size { file.size } else { space }, inodes: 1 })
    }

    fn print(&self, path: &OsStr, sum: Sum, out: &mut dyn Write) -> Result<()> {
        let Sum { bytes, inodes } = sum;
        if self.json {
            let path = text::Name::new(path.as_bytes());
            return Ok(report::json_line(out, &Line { path, bytes, inodes })?);
        }
        let count =
            if self.inodes { inodes.to_string() } else { self.sizes.shown(bytes, KIBIBYTE) };
        write!(out, "{count}\t")?;
        self.names.write(path.as_bytes(), out)?;
        Ok(self.names.end(out)?)
    }
}
