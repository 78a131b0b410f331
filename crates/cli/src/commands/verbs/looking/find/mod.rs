//! `undercroft find`.

mod candidate;
mod expression;
mod parse;
mod test;

use super::names::NameArgs;
use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::Result;
use candidate::Candidate;
use parse::Query;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::Metadata;

/// Find files by name, kind, size, time, owner, mode, attributes.
///
/// Paths come first, then what the files are to be, as find(1) has it; with more than one, a file is to
/// be all of it. * ? and [ ] stand for parts of names; a shell wants them quoted.
///
/// Tests: -name GLOB, -iname GLOB, -path GLOB, -type f|d|l|b|c|p|s, -size `[+-]N[ckMG]`, -empty,
/// -newer PATH, -newermt TIME, -user NAME|UID, -group NAME|GID, -perm [-/]MODE, -xattr GLOB,
/// -links `[+-]N`, -inum `[+-]N`. + is more than, - less than. Together: ! not, -a and, -o or, ( ).
/// Further words: -maxdepth N, -mindepth N, -print0, -print.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    names: NameArgs,

    /// Paths from the root directory of the volume, and tests. Options come before them.
    #[arg(value_name = "PATH|TEST", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  undercroft find root.img /etc -name '*tab' -newermt 2020-01-01T00:00:00Z
  undercroft find root.img -type f -perm -4000     programs that run as their owner
  undercroft find root.img -xattr security.capability
  undercroft find root.img /var/log -name '*.gz' -print0 | xargs -0 -r undercroft rm root.img";

/// A file as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    inode: u64,
    kind: &'static str,
    size: u64,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let query = Query::of(&self.words, session)?;
        for path in &query.paths {
            self.search(session, &query, path, out)?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    fn search(
        &self,
        session: &Session<'_>,
        query: &Query,
        top: &OsStr,
        out: &mut dyn Write,
    ) -> Result<()> {
        let found = session.fs.symlink_metadata(top)?;
        if !found.is_dir() {
            return self.look(session, query, (top, 0), &found, out);
        }
        let mut walk = session.fs.walk(top)?;
        while let Some(entry) = walk.next() {
            let entry = entry?;
            if entry.metadata().is_dir() && entry.depth() >= query.max_depth {
                walk.skip_directory();
            }
            let place = (entry.path().as_os_str(), entry.depth());
            self.look(session, query, place, entry.metadata(), out)?;
        }
        Ok(())
    }

    /// Prints a file if it is what is looked for.
    fn look(
        &self,
        session: &Session<'_>,
        query: &Query,
        (path, depth): (&OsStr, usize),
        metadata: &Metadata,
        out: &mut dyn Write,
    ) -> Result<()> {
        let candidate = Candidate { path: path.as_bytes(), metadata, session };
        if depth < query.min_depth || !query.expression.holds(&candidate)? {
            return Ok(());
        }
        if self.json {
            let (path, kind) = (text::Name::new(path.as_bytes()), text::kind(metadata.kind));
            let line = Line { path, inode: metadata.number.0, kind, size: metadata.size };
            return Ok(report::json_line(out, &line)?);
        }
        let names = if query.print_null { NameArgs::NULL } else { self.names };
        names.write(path.as_bytes(), out)?;
        Ok(names.end(out)?)
    }
}
