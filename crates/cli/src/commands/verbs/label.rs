//! `undercroft label`.

use super::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use crate::value;
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::maintain;

/// Print the label of a volume, or give it another one.
///
/// A label has at most 12 bytes; an empty one, written '', takes the label away. Mount by it with
/// `mount LABEL=NAME`. It is changed through the journal, then in all copies of the superblock.
///
/// For example: undercroft label root.img, undercroft label root.img rootfs
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The new label; without it, the present one is printed.
    #[arg(value_parser = value::label())]
    name: Option<OsString>,

    /// Print the label, the new one if it is set, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Label {
    label: text::Name,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        self.name.is_some()
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        if let Some(name) = &self.name {
            maintain::set_label(session.volume, name.as_bytes())?;
        }
        let label = text::Name::new(&maintain::label(session.volume)?);
        if self.json {
            report::json_line(out, &Label { label })?;
        } else if self.name.is_none() {
            writeln!(out, "{label}")?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}
