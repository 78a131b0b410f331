//! `undercroft getxattr`.

use crate::commands::verbs::Verb;
use crate::report::{self, Outcome};
use crate::session::{LastLink, Session};
use crate::text;
use anyhow::{Result, bail};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::PathError;
use undercroft_xfs::ops::{self, path_text};

/// Print the extended attributes of a file, or the value of one.
///
/// All of them are printed a line each, bytes that are not text as escapes; the value of one as it
/// is. Symbolic links are not followed.
///
/// For example: undercroft getxattr root.img /etc/fstab
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Full name, such as user.comment.
    name: Option<OsString>,

    #[command(flatten)]
    last: LastLink,

    /// Print a JSON object with all of them, values in hexadecimal.
    #[arg(long)]
    json: bool,
}

/// The attributes of a file as JSON.
#[derive(Serialize)]
struct Attributes {
    path: text::Name,
    attributes: Vec<text::Attribute>,
}

impl Verb for Args {
    const CHANGES: bool = false;

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let file = session.open(&self.path, self.last)?;
        let inode = file.open_file().inode().read();
        let failed = |error| PathError::new(&self.path, error);
        let value = |name: &OsString| ops::get_xattr(session.volume, &inode, name.as_bytes());
        let mut found = match &self.name {
            None => ops::attributes(session.volume, &inode).map_err(failed)?,
            Some(name) => match value(name).map_err(failed)? {
                Some(value) => vec![(name.as_bytes().to_vec(), value)],
                None => {
                    let [path, name] = [&self.path, name].map(|text| path_text(text.as_bytes()));
                    bail!("{path}: has no attribute {name}");
                }
            },
        };
        found.sort_unstable();
        if self.json {
            let path = text::Name::new(self.path.as_bytes());
            let attributes = found.iter().map(|(name, value)| text::Attribute::new(name, value));
            report::json_line(out, &Attributes { path, attributes: attributes.collect() })?;
            return Ok(Outcome::Done);
        }
        for (name, value) in &found {
            if self.name.is_some() {
                out.write_all(value)?;
            } else {
                writeln!(out, "{}=\"{}\"", text::name(name), value.escape_ascii())?;
            }
        }
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}
