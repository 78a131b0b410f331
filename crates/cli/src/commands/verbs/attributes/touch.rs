//! `undercroft touch`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{Change, ErrorKind, NewFile, PathError, SetTime, Timestamp};

/// Set the times of files; create empty files where there are none.
///
/// Times that the volume cannot hold become the nearest that it can.
///
/// For example: undercroft touch --time @0 root.img /etc/fstab
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// The time, instead of the present: @SECONDS since 1970 or RFC 3339, to the nanosecond.
    #[arg(short, long, visible_short_alias = 'd', visible_alias = "date", value_parser = value::time, value_name = "TIME")]
    time: Option<Timestamp>,

    /// The time of the last access only.
    #[arg(short, long)]
    access: bool,

    /// The time of the last modification only.
    #[arg(short, long)]
    modification: bool,

    /// Create nothing.
    #[arg(short = 'c', long)]
    no_create: bool,

    #[command(flatten)]
    last: LastLink,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &session.matching(&self.path)? {
            let file = match session.open(path, self.last) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if self.no_create {
                        continue;
                    }
                    session.fs.create_file(path, &NewFile::new(0o644))?
                }
                found => found?,
            };
            let time = Some(self.time.map_or(SetTime::Now, SetTime::To));
            let both = self.access == self.modification;
            let change = Change {
                accessed: time.filter(|_| both || self.access),
                modified: time.filter(|_| both || self.modification),
                ..Change::default()
            };
            file.set_attributes(&change).map_err(|error| PathError::new(path, error))?;
        }
        Ok(Outcome::Done)
    }
}
