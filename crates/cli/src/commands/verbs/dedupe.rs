//! `undercroft dedupe`.

use super::Verb;
use super::clone::RangeArgs;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::PathError;

/// Let a file share the blocks of another where both are the same.
///
/// The two ranges are compared first; if they differ, nothing is changed and the exit status is 1.
///
/// For example: undercroft clone root.img /etc/fstab /copy && undercroft dedupe root.img /etc/fstab /copy
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to share blocks of.
    source: OsString,

    /// The file that gives up its own.
    path: OsString,

    #[command(flatten)]
    range: RangeArgs,

    /// Print as JSON whether the ranges are the same.
    #[arg(long)]
    json: bool,
}

/// The result, as JSON.
#[derive(Serialize)]
struct Compared {
    source: text::Name,
    path: text::Name,
    same: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let source = session.fs.open_file(&self.source)?;
        let target = session.fs.open_file(&self.path)?;
        let same = target
            .open_file()
            .dedupe_range(source.open_file(), &self.range.range(source.size()))
            .map_err(|error| PathError::new(&self.path, error))?;
        if self.json {
            let [source, path] =
                [&self.source, &self.path].map(|path| text::Name::new(path.as_bytes()));
            report::json_line(out, &Compared { source, path, same })?;
        } else if !same {
            writeln!(out, "the ranges differ")?;
        }
        Ok(if same { Outcome::Done } else { Outcome::Findings })
    }

    fn json(&self) -> bool {
        self.json
    }
}
