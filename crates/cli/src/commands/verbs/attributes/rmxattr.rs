//! `undercroft rmxattr`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::PathError;
use undercroft_xfs::ops::path_text;

/// Remove extended attributes of a file.
///
/// For example: undercroft setxattr root.img /home user.a 1 && undercroft rmxattr root.img /home user.a
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Full names, such as user.comment.
    #[arg(required = true)]
    name: Vec<OsString>,

    #[command(flatten)]
    last: LastLink,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let file = session.open(&self.path, self.last)?;
        for name in &self.name {
            let name = name.as_bytes();
            let found = session.fs.nodes().remove_xattr(file.number(), name);
            if !found.map_err(|error| PathError::new(&self.path, error))? {
                let path = path_text(self.path.as_bytes());
                bail!("{path}: has no attribute {}", path_text(name));
            }
        }
        Ok(Outcome::Done)
    }
}
