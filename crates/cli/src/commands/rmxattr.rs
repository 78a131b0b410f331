//! `undercroft rmxattr`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, path_text};

/// Remove extended attributes of a file.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Full names, such as user.comment.
    #[arg(required = true)]
    name: Vec<OsString>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let number = session.find(&self.path)?;
        for name in &self.name {
            let name = name.as_bytes();
            let found = ops::remove_xattr(session.volume, number, name, session.now())
                .map_err(|error| renamed(error, &self.path))?;
            if !found {
                let path = path_text(self.path.as_bytes());
                bail!("{path}: has no attribute {}", path_text(name));
            }
        }
        Ok(Outcome::Done)
    }
}
