//! `undercroft getacl`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_xfs::format::{Acl, AclKind};
use undercroft_xfs::ops;

/// Print the access list of a file, and the default list of a directory.
///
/// A file without a list has what its permission bits say. Lines are what `setacl` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        false
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let inode = session.volume.inode(session.find(&self.path)?)?;
        let inode = inode.read();
        let list = |kind: AclKind| -> Result<Option<Acl>> {
            let name = kind.xattr_name().as_bytes();
            let value = ops::get_xattr(session.volume, &inode, name)?;
            Ok(value.map(|value| Acl::from_xattr(&value)).transpose()?.flatten())
        };
        let access = list(AclKind::Access)?.unwrap_or_else(|| Acl::of_mode(inode.core.mode));
        for entry in access.entries() {
            writeln!(out, "{entry}")?;
        }
        for entry in list(AclKind::Default)?.iter().flat_map(Acl::entries) {
            writeln!(out, "default:{entry}")?;
        }
        Ok(Outcome::Done)
    }
}
