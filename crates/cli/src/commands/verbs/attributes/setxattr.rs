//! `undercroft setxattr`.

use crate::commands::verbs::Verb;
use crate::report::Outcome;
use crate::session::{LastLink, Session};
use crate::value;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use undercroft_fs::{Error, PathError, SetMode};

/// Set an extended attribute of a file.
///
/// Names begin with user., trusted. or security.; access lists have a command of their own.
/// Symbolic links are not followed.
///
/// For example: undercroft setxattr root.img /etc/fstab user.comment 'made by hand'
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Full name, such as user.comment.
    name: OsString,

    /// The value, at most 65,536 bytes.
    #[arg(required_unless_present_any = ["hex", "file"])]
    value: Option<OsString>,

    /// The value in hexadecimal digits.
    #[arg(long, value_parser = value::hex, conflicts_with_all = ["value", "file"])]
    hex: Option<value::Bytes>,

    /// The file of this machine that holds the value.
    #[arg(long, conflicts_with = "value")]
    file: Option<PathBuf>,

    #[command(flatten)]
    last: LastLink,

    /// Fail if the attribute exists.
    #[arg(long, conflicts_with = "replace")]
    create: bool,

    /// Fail if the attribute does not exist.
    #[arg(long)]
    replace: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let file = session.open(&self.path, self.last)?;
        let value = match (&self.value, &self.hex, &self.file) {
            (_, Some(hex), _) => hex.0.clone(),
            (_, _, Some(file)) => {
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
            }
            (value, ..) => value.clone().unwrap_or_default().into_vec(),
        };
        let mode = match (self.create, self.replace) {
            (true, _) => SetMode::Create,
            (_, true) => SetMode::Replace,
            _ => SetMode::Either,
        };
        let set = session.fs.nodes().set_xattr(file.number(), self.name.as_bytes(), &value, mode);
        set.map_err(|error| match error {
            // It names the attribute.
            Error::Exists(_) => PathError::from(error),
            error => PathError::new(&self.path, error),
        })?;
        Ok(Outcome::Done)
    }
}
