//! `undercroft tree`.

use super::ls::entry::{self, Entry, Order, Wanted};
use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::vec;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::units::InodeNumber;

/// Draw a directory and all that is below it as a tree.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Path from the root directory of the volume, which is the one that is drawn by default.
    path: Option<OsString>,

    /// Show directories only.
    #[arg(short, long)]
    directories: bool,

    /// Show so many levels.
    #[arg(short = 'L', long, value_name = "N")]
    level: Option<NonZeroUsize>,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft tree -L 2 root.img /etc";

/// A name as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    depth: usize,
    inode: u64,
    kind: &'static str,
}

/// A directory that is being drawn.
struct Open {
    path: Vec<u8>,
    entries: vec::IntoIter<Entry>,
}

/// What was drawn.
#[derive(Default)]
struct Counts {
    directories: u64,
    files: u64,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let path = self.path.clone().unwrap_or_else(|| session.here());
        let top = session.fs.metadata(&path)?;
        let path = path.as_bytes();
        if !top.is_dir() {
            bail!("{}: is no directory", path_text(path));
        }
        if !self.json {
            writeln!(out, "{}", text::name(path))?;
        }
        let counts = self.draw(session, path, top.number, out)?;
        if !self.json {
            let Counts { directories, files } = counts;
            write!(out, "\n{directories} directories")?;
            match self.directories {
                true => writeln!(out)?,
                false => writeln!(out, ", {files} files")?,
            }
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    fn draw(
        &self,
        session: &Session<'_>,
        path: &[u8],
        number: InodeNumber,
        out: &mut dyn Write,
    ) -> Result<Counts> {
        let (mut seen, mut counts) = (HashSet::from([number]), Counts::default());
        let mut way = vec![self.open(session, path.to_vec(), number)?];
        while let Some(last) = way.last_mut() {
            let Some(entry) = last.entries.next() else {
                way.pop();
                continue;
            };
            let below = text::join(&last.path, &entry.name);
            let is_directory = entry.is_directory(session)?;
            self.print(&way, &entry, &below, out)?;
            if !is_directory {
                counts.files += 1;
                continue;
            }
            counts.directories += 1;
            if !seen.insert(entry.number) {
                let path = path_text(&below);
                bail!("{path}: directory {} has two names; run `undercroft check`", entry.number);
            }
            if self.level.is_none_or(|most| way.len() < most.get()) {
                way.push(self.open(session, below, entry.number)?);
            }
        }
        Ok(counts)
    }

    fn open(&self, session: &Session<'_>, path: Vec<u8>, number: InodeNumber) -> Result<Open> {
        let wanted = Wanted { dots: false, metadata: false, order: Order::Names, reverse: false };
        let mut entries =
            entry::entries(session, number, wanted).with_context(|| path_text(&path))?;
        if self.directories {
            let mut kept = Vec::new();
            for entry in entries {
                if entry.is_directory(session)? {
                    kept.push(entry);
                }
            }
            entries = kept;
        }
        Ok(Open { path, entries: entries.into_iter() })
    }

    /// Prints a name behind the lines that lead to it and to those that follow.
    fn print(&self, way: &[Open], entry: &Entry, path: &[u8], out: &mut dyn Write) -> Result<()> {
        if self.json {
            let kind = entry.kind.map_or("unknown", text::kind);
            let (path, inode) = (text::Name::new(path), entry.number.0);
            return Ok(report::json_line(out, &Line { path, depth: way.len(), inode, kind })?);
        }
        if let Some((last, above)) = way.split_last() {
            for open in above {
                let more = !open.entries.as_slice().is_empty();
                out.write_all(if more { "│   " } else { "    " }.as_bytes())?;
            }
            let more = !last.entries.as_slice().is_empty();
            out.write_all(if more { "├── " } else { "└── " }.as_bytes())?;
        }
        let mark = if entry.kind == Some(FileType::Directory) { "/" } else { "" };
        Ok(writeln!(out, "{}{mark}", text::name(&entry.name))?)
    }
}
