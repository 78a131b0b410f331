//! `undercroft getacl`.

use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::Result;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::PathError;
use undercroft_xfs::format::{Acl, AclKind};

/// Print the access list of a file, and the default list of a directory.
///
/// For a file without a list, the entries of its permission bits are printed. Lines have the form
/// that `setacl` takes.
///
/// For example: undercroft getacl root.img /home/user
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// The lists as JSON, entries as `setacl` takes them.
#[derive(Serialize)]
struct Lists {
    path: text::Name,
    access: Vec<String>,
    default: Vec<String>,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let file = session.fs.open_file(&self.path)?;
        let list = |kind: AclKind| -> Result<Option<Acl>> {
            let value = session.fs.nodes().get_xattr(file.number(), kind.xattr_name().as_bytes());
            let value = value.map_err(|error| PathError::new(&self.path, error))?;
            Ok(value.map(|value| Acl::from_xattr(&value)).transpose()?.flatten())
        };
        let mode = file.metadata().full_mode();
        let access = list(AclKind::Access)?.unwrap_or_else(|| Acl::of_mode(mode));
        let default = list(AclKind::Default)?;
        let words = |list: &Acl| list.entries().iter().map(ToString::to_string).collect();
        let lists = Lists {
            path: text::Name::new(self.path.as_bytes()),
            access: words(&access),
            default: default.as_ref().map(words).unwrap_or_default(),
        };
        if self.json {
            report::json_line(out, &lists)?;
            return Ok(Outcome::Done);
        }
        for entry in &lists.access {
            writeln!(out, "{entry}")?;
        }
        for entry in &lists.default {
            writeln!(out, "default:{entry}")?;
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}
