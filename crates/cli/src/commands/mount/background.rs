//! A server in the background.
//!
//! The command runs itself again, in a session of its own, and waits until that says that the mount
//! answers. A process with threads cannot be split in two, and volumes have threads.

use crate::report::Outcome;
use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use std::env;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set for the process that becomes the server.
const SERVER: &str = "UNDERCROFT_MOUNT_SERVER";

/// Begins the word that the mount answers; behind it is the directory, if it is known.
const READY: &[u8] = b"ready ";

/// A server in the background whose mount answers.
pub(super) struct Background {
    /// Its process, whose standard input ends with this one if that was asked for.
    pub(super) process: Child,
    /// Where it has mounted, unless another program has.
    pub(super) directory: Option<PathBuf>,
}

/// Whether this process is to be the server.
pub(super) fn is_server() -> bool {
    env::var_os(SERVER).is_some()
}

/// Starts the server; returns when the mount answers, or with the status of a server that has said why
/// it does not. With `bound` it sees the end of this process at its standard input.
pub(super) fn start(place: &str, bound: bool) -> Result<Result<Background, Outcome>> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| "undercroft".into());
    let mut process = Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .env(SERVER, "1")
        .stdin(if bound { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the server")?;
    let mut word = Vec::new();
    if let Some(mut stdout) = process.stdout.take() {
        stdout.read_to_end(&mut word).context("cannot hear from the server")?;
    }
    if let Some(directory) = word.strip_prefix(READY) {
        let directory = (!directory.is_empty()).then(|| OsStr::from_bytes(directory).into());
        return Ok(Ok(Background { process, directory }));
    }
    // It has printed why.
    let status = process.wait().context("cannot wait for the server")?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code @ 1..) => Ok(Err(Outcome::Status(code))),
        _ => bail!("the server of {place} ended before it had mounted: {status}"),
    }
}

/// Leaves the session of the caller, so that its end is not the server's.
pub(super) fn leave_session() {
    // It fails for the leader of a group, which a child is not.
    let _ = rustix::process::setsid();
}

/// What a server has for streams once nothing waits for it.
pub(super) fn open_null() -> Result<OwnedFd> {
    rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).context("cannot open /dev/null")
}

/// Tells the caller that the mount answers, and lets its streams go: others may wait for their end.
/// A server that is `bound` to the caller has its standard input, and goes on to write its log to
/// standard error.
pub(super) fn say_ready(directory: Option<&Path>, null: &OwnedFd, bound: bool) -> Result<()> {
    let directory = directory.map_or(&[][..], |directory| directory.as_os_str().as_bytes());
    let mut out = std::io::stdout();
    out.write_all(&[READY, directory].concat())?;
    out.flush()?;
    rustix::stdio::dup2_stdout(null)?;
    if !bound {
        rustix::stdio::dup2_stdin(null)?;
        rustix::stdio::dup2_stderr(null)?;
    }
    // Its directory can be unmounted.
    env::set_current_dir("/").context("cannot leave the directory")?;
    Ok(())
}
