//! `undercroft ls`.

pub(super) mod entry;
mod line;

use super::names::NameArgs;
use super::sizes::SizeArgs;
use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::Session;
use crate::text;
use anyhow::{Context, Result, bail};
use entry::{Entry, Order, Wanted};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{Metadata, PathError};
use undercroft_xfs::ops::path_text;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{TreeAhead, WalkOrder};

/// List directories, sorted by name.
///
/// Names that begin with a dot are listed like all others. A symbolic link to a directory is followed if
/// a path ends in it, but not with --long unless a slash follows. * ? and [ ] in a path stand for names
/// that are there.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "options as people know them")]
pub(crate) struct Args {
    /// Paths from the root directory of the volume, which is the one that is listed by default.
    path: Vec<OsString>,

    /// Show mode, links, owner, size and modification time.
    #[arg(short, long)]
    long: bool,

    #[command(flatten)]
    sizes: SizeArgs,

    /// List . and .. as well.
    #[arg(short, long)]
    all: bool,

    /// List a directory itself, not what is in it.
    #[arg(short, long)]
    directory: bool,

    /// List the directories below as well.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Show the number of the inode.
    #[arg(short, long)]
    inode: bool,

    /// Show the kind behind a name: / directory, @ symbolic link, * program, | pipe, = socket.
    #[arg(short = 'F', long)]
    classify: bool,

    /// Sort by size, the largest first.
    #[arg(short = 'S', conflicts_with = "by_time")]
    by_size: bool,

    /// Sort by time of modification, the newest first.
    #[arg(short = 't')]
    by_time: bool,

    /// Sort the other way round.
    #[arg(short, long)]
    reverse: bool,

    #[command(flatten)]
    names: NameArgs,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft ls -l root.img /etc
  undercroft ls -lhS root.img '/etc/*tab'      the largest first";

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let paths = session.matching_or_here(&self.path)?;
        let (mut directories, mut others) = (Vec::new(), Vec::new());
        for path in &paths {
            let top = self.top(session, path)?;
            let is_listed = top.is_dir() && !self.directory;
            if is_listed { &mut directories } else { &mut others }.push((path.as_os_str(), top));
        }
        for (path, file) in &others {
            let entry = Entry::of(path.as_bytes().to_vec(), *file);
            line::print(session, self, path.as_bytes(), &entry, out)?;
        }
        for (index, (path, directory)) in directories.iter().enumerate() {
            let is_titled = paths.len() > 1 || self.recursive;
            if is_titled && !self.json && (index > 0 || !others.is_empty()) {
                writeln!(out)?;
            }
            self.tree(session, path, directory.number, is_titled, out)?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    /// The file of a path: as `ls` has it, a symbolic link is one in a long listing, or if it leads to
    /// no directory.
    fn top(&self, session: &Session<'_>, path: &OsStr) -> Result<Metadata, PathError> {
        let found = session.fs.symlink_metadata(path)?;
        if !found.is_symlink() || self.long || self.directory {
            return Ok(found);
        }
        let target = session.fs.metadata(path);
        Ok(target.ok().filter(Metadata::is_dir).unwrap_or(found))
    }

    fn wanted(&self) -> Wanted {
        let order = match (self.by_size, self.by_time) {
            (true, _) => Order::Sizes,
            (_, true) => Order::Times,
            _ => Order::Names,
        };
        let metadata = self.long || self.classify;
        Wanted { dots: self.all, metadata, order, reverse: self.reverse }
    }

    /// Lists a directory, and with --recursive those below.
    fn tree(
        &self,
        session: &Session<'_>,
        path: &OsStr,
        number: InodeNumber,
        is_titled: bool,
        out: &mut dyn Write,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        let mut waiting = vec![(path.as_bytes().to_vec(), number)];
        let mut ahead =
            self.recursive.then(|| TreeAhead::new(session.volume, number, WalkOrder::Names));
        while let Some((path, number)) = waiting.pop() {
            if let Some(ahead) = &mut ahead {
                ahead.reach(number);
            }
            if !seen.insert(number) {
                let path = path_text(&path);
                bail!("{path}: directory {number} has two names; run `undercroft check`");
            }
            let entries =
                entry::entries(session, number, self.wanted()).with_context(|| path_text(&path))?;
            if is_titled && !self.json {
                let first = if seen.len() == 1 { "" } else { "\n" };
                out.write_all(first.as_bytes())?;
                self.names.write(&path, out)?;
                writeln!(out, ":")?;
            }
            for entry in &entries {
                let below = text::join(&path, &entry.name);
                line::print(session, self, &below, entry, out)
                    .with_context(|| path_text(&below))?;
            }
            for entry in entries.into_iter().rev().filter(|_| self.recursive) {
                if !entry.is_dot() && entry.is_directory(session)? {
                    waiting.push((text::join(&path, &entry.name), entry.number));
                }
            }
        }
        Ok(())
    }
}
