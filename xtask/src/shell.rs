//! Running other programs: every failure names the command line and its output.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command line as a person would type it, for messages.
pub(crate) fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// Runs `command` with our terminal and no input, and fails when its exit status is not zero.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// As [`run`], and passes each line of its output on to `see` after it is printed.
pub(crate) fn run_through(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    let output = child.stdout.take().context("a piped output is there once")?;
    for text in BufReader::new(output).split(b'\n') {
        let text = text.with_context(|| format!("cannot read from `{}`", line(command)))?;
        let text = String::from_utf8_lossy(&text);
        println!("{text}");
        see(&text);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// Runs `command` and returns its output; on failure the error carries both its outputs.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}:\n{stdout}{stderr}", line(command), output.status);
    }
    Ok(stdout)
}

/// The path of `program` as the shell would find it, also looking where only root's `PATH` does.
pub(crate) fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    undercroft_judges::program::find(program.as_ref())
}
