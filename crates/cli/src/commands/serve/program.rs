//! A program that runs while devices are served.

use crate::child;
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use undercroft_nbd::protocol::Uri;

/// Names the first export to the program.
const PLACE: &str = "NBD_URI";

/// Runs the program; the outcome is its own. An interrupt from the terminal goes to it by itself,
/// and it ends the server by ending.
pub(super) fn run(program: &OsStr, arguments: &[OsString], uri: &Uri) -> Result<Outcome> {
    let mut command = Command::new(program);
    command.args(arguments).env(PLACE, uri.to_string());
    let mut child = child::spawn(command).map_err(|error| {
        anyhow!(error).context(format!("cannot run {}", Path::new(program).display()))
    })?;
    let status = child.wait().context("cannot wait for the program")?;
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    Ok(Outcome::Status(u8::try_from(code).unwrap_or(u8::MAX)))
}
