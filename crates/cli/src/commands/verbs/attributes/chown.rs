//! `undercroft chown`.

use crate::commands::verbs::Verb;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::Change;

/// Set the owner and group of files.
///
/// Names are those in /etc/passwd and /etc/group of the volume; any other word is a number. As on
/// Linux, a file that gets another owner loses its setuid bit, its setgid bit if its group may
/// execute it, and its capabilities.
///
/// For example: undercroft chown -R root.img 1000:1000 /home/user
#[derive(clap::Args)]
pub(crate) struct Args {
    /// USER:GROUP, or USER or :GROUP alone, by name or number; USER: for the group of the user.
    owner: NewOwner,

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// The contents of directories as well; symbolic links below are not followed.
    #[arg(short = 'R', long)]
    recursive: bool,

    #[command(flatten)]
    last: LastLink,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let (uid, gid) = self.owner.resolve(session)?;
        let change = Change { uid, gid, ..Change::default() };
        for path in &session.matching(&self.path)? {
            session.walk(path, self.last, self.recursive, &mut |file| {
                session.fs.nodes().set_attributes(file.number, &change).map(drop)
            })?;
        }
        Ok(Outcome::Done)
    }
}
