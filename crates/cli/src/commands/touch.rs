//! `undercroft touch`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::ops::{self, MetadataChange};

/// Set the times of files; create empty files where there are none.
///
/// Times that the volume cannot hold become the nearest that it can.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// The time, instead of the present: @SECONDS since 1970 or RFC 3339, to the nanosecond.
    #[arg(short, long, value_parser = value::time, value_name = "TIME")]
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
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &self.path {
            let number = match session.find_if_there(path)? {
                Some(number) => number,
                None if self.no_create => continue,
                None => {
                    let new = session.new_inode(FileType::Regular, 0o644, (0, 0));
                    session.make(path, &new)?
                }
            };
            let now = session.now();
            let time = Some(self.time.unwrap_or(now));
            let both = self.access == self.modification;
            let change = MetadataChange {
                access: time.filter(|_| both || self.access),
                modification: time.filter(|_| both || self.modification),
                ..MetadataChange::default()
            };
            ops::change_metadata(session.volume, number, &change, now)
                .map_err(|error| renamed(error, path))?;
        }
        Ok(Outcome::Done)
    }
}
