//! `undercroft setacl`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{PathError, SetMode};
use undercroft_xfs::format::{Acl, AclKind};

/// Set or remove the access list of a file, or the default list of a directory.
///
/// A list is written as POSIX does, with numbers for users and groups:
/// `u::rw-,u:1000:rwx,g::r--,m::rwx,o::---`. Entries for owner, group and others must be there. A
/// mask that is left out becomes the union of all users' and groups' permissions in the list.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// The entries, separated by commas or white space.
    #[arg(required_unless_present = "remove", value_parser = acl)]
    list: Option<Acl>,

    /// The list that new files in the directory get.
    #[arg(short, long)]
    default: bool,

    /// Remove the list: only the permission bits stay.
    #[arg(short, long, conflicts_with = "list")]
    remove: bool,
}

fn acl(text: &str) -> Result<Acl, String> {
    text.parse().map_err(|error: undercroft_xfs::format::AclError| error.to_string())
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let (fs, number) = (&session.fs, session.fs.open_file(&self.path)?.number());
        let kind = if self.default { AclKind::Default } else { AclKind::Access };
        let name = kind.xattr_name().as_bytes();
        let done = match &self.list {
            Some(list) => fs.nodes().set_xattr(number, name, &list.to_xattr(), SetMode::Either),
            None => fs.nodes().remove_xattr(number, name).map(drop),
        };
        done.map_err(|error| PathError::new(&self.path, error))?;
        Ok(Outcome::Done)
    }
}
