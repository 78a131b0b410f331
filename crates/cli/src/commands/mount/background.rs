//! A server in the background.
//!
//! The command runs itself again, in a session of its own, and waits until that says that the mount
//! answers. A process with threads cannot be split in two, and volumes have threads.

use crate::report::Outcome;
use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use std::env;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Set for the process that becomes the server.
const SERVER: &str = "UNDERCROFT_MOUNT_SERVER";

/// Whether this process is to be the server.
pub(super) fn is_server() -> bool {
    env::var_os(SERVER).is_some()
}

/// Starts the server, and returns when the mount answers.
pub(super) fn start(directory: &Path) -> Result<Outcome> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| "undercroft".into());
    let mut server = Command::new("/proc/self/exe")
        .arg0(name)
        .args(arguments)
        .env(SERVER, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the server")?;
    let mut word = Vec::new();
    if let Some(mut stdout) = server.stdout.take() {
        stdout.read_to_end(&mut word).context("cannot hear from the server")?;
    }
    if !word.is_empty() {
        return Ok(Outcome::Done);
    }
    // It has printed why.
    let status = server.wait().context("cannot wait for the server")?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code @ 1..) => Ok(Outcome::Status(code)),
        _ => bail!("the server of {} ended before it had mounted: {status}", directory.display()),
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
pub(super) fn say_ready(out: &mut dyn Write, null: &OwnedFd) -> Result<()> {
    out.write_all(b"ready\n")?;
    out.flush()?;
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    rustix::stdio::dup2_stderr(null)?;
    // Its directory can be unmounted.
    env::set_current_dir("/").context("cannot leave the directory")?;
    Ok(())
}
