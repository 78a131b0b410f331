//! `undercroft mkdir`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use undercroft_xfs::format::FileType;
use undercroft_xfs::{Error, ErrorKind};

/// Create directories.
///
/// A directory takes over what the one above it hands down: its group if that has the set-group-id
/// bit, project, flags, and the default access list.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// Create the directories above as well, and accept those that exist.
    #[arg(short, long)]
    parents: bool,

    /// Permission bits in octal.
    #[arg(short, long, value_name = "MODE", default_value = "755", value_parser = value::mode)]
    mode: u16,

    /// Owner and group, as numbers.
    #[arg(long, value_name = "UID:GID", default_value = "0:0", value_parser = value::owner)]
    owner: (u32, u32),
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &self.path {
            if self.parents {
                self.make_all(session, Path::new(path))?;
            } else {
                let new = session.new_inode(FileType::Directory, self.mode, self.owner);
                session.make(path, &new)?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Args {
    fn make_all(&self, session: &Session<'_>, path: &Path) -> Result<()> {
        let mut at = std::path::PathBuf::new();
        for part in path.components() {
            at.push(part);
            if !matches!(part, Component::Normal(_)) {
                continue;
            }
            let last = at == path;
            match session.find_if_there(at.as_os_str())? {
                None => {
                    // Those on the way are for everybody to pass through.
                    let mode = if last { self.mode } else { 0o755 };
                    let new = session.new_inode(FileType::Directory, mode, self.owner);
                    session.make(at.as_os_str(), &new)?;
                }
                Some(number) if session.kind(number)? == FileType::Directory => {}
                Some(_) => return Err(not_a_directory(at.as_os_str()).into()),
            }
        }
        Ok(())
    }
}

fn not_a_directory(path: &OsStr) -> Error {
    let path = undercroft_xfs::ops::path_text(path.as_bytes());
    Error::WrongKind { path, what: "not a directory", kind: ErrorKind::NotDirectory }
}
