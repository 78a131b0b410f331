//! `undercroft setacl`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{File, PathError, SetMode};
use undercroft_xfs::format::{Acl, AclEntry, AclKind, AclTag};

/// Set or remove the access list of a file, or the default list of a directory.
///
/// A list is written as POSIX does, with numbers for users and groups:
/// `u::rw-,u:1000:rwx,g::r--,m::rwx,o::---`. With entries for owner, group and others it takes the place
/// of the list that is there; otherwise its entries are added to that, or replace those for the same,
/// as `setfacl -m` does. A mask that is left out becomes the union of all users' and groups'
/// permissions in the list.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// The entries, separated by commas or white space.
    #[arg(required_unless_present = "remove", value_parser = entries)]
    list: Option<Entries>,

    /// The list that new files in the directory get.
    #[arg(short, long)]
    default: bool,

    /// Remove the list: only the permission bits stay.
    #[arg(short, long, conflicts_with = "list")]
    remove: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft setacl root.img /etc/fstab u:1000:rw
  undercroft setacl --default root.img /home u::rwx,g::rx,g:100:rwx,o::-";

/// Entries of a list.
#[derive(Clone, Debug)]
struct Entries(Vec<AclEntry>);

fn entries(text: &str) -> Result<Entries, String> {
    AclEntry::all_of(text).map(Entries).map_err(|error| error.to_string())
}

impl Entries {
    /// Whether they are a list by themselves.
    fn are_whole(&self) -> bool {
        let has = |tag| self.0.iter().any(|entry| entry.tag == tag);
        has(AclTag::UserObj) && has(AclTag::GroupObj) && has(AclTag::Other)
    }

    /// The list that they make of the one that a file has.
    fn over(&self, file: &File, kind: AclKind) -> Result<Acl> {
        let entries = self.0.clone();
        if self.are_whole() {
            return Ok(Acl::of_entries(entries)?);
        }
        let nodes = file.file_system().nodes();
        let value = nodes.get_xattr(file.number(), kind.xattr_name().as_bytes())?;
        let list = value.map(|value| Acl::from_xattr(&value)).transpose()?.flatten();
        Ok(list.unwrap_or_else(|| Acl::of_mode(file.metadata().mode)).with(entries)?)
    }
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let file = session.fs.open_file(&self.path)?;
        let (fs, number) = (&session.fs, file.number());
        let kind = if self.default { AclKind::Default } else { AclKind::Access };
        let name = kind.xattr_name().as_bytes();
        let done = match &self.list {
            Some(entries) => {
                let list = entries.over(&file, kind)?;
                fs.nodes().set_xattr(number, name, &list.to_xattr(), SetMode::Either)
            }
            None => fs.nodes().remove_xattr(number, name).map(drop),
        };
        done.map_err(|error| PathError::new(&self.path, error))?;
        Ok(Outcome::Done)
    }
}
