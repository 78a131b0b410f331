//! A program that runs while a volume is mounted.

use super::serve::{Event, Served, mount};
use super::{Args, Plan};
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Names the directory of the mount to the program.
const PLACE: &str = "UNDERCROFT_MOUNT";

/// Time between two looks at the program and at signals.
const PAUSE: Duration = Duration::from_millis(10);

/// A directory that goes when it is dropped, empty as it is then.
struct PrivatePlace(PathBuf);

impl PrivatePlace {
    fn new() -> Result<Self> {
        let name = format!("undercroft-mount-{}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PrivatePlace {
    fn drop(&mut self) {
        // A mount that is still in use keeps it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Mounts, runs the program, unmounts; the outcome is the program's.
pub(super) fn run(
    args: &Args,
    plan: &Plan,
    directory: Option<&Path>,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<Outcome> {
    let private = if directory.is_none() { Some(PrivatePlace::new()?) } else { None };
    let place = match (&private, directory) {
        (Some(private), _) => &private.0,
        (None, Some(directory)) => directory,
        (None, None) => return Err(anyhow!("there is no place to mount at")),
    };
    let served = mount(args, plan, place)?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(place) = &served.directory {
        command.env(PLACE, place);
    }
    if let Some(private) = &private {
        command.current_dir(&private.0);
    }
    let ended = match command.spawn() {
        Ok(child) => {
            served.confine();
            wait(child, &served)
        }
        Err(error) => {
            let name = Path::new(program).display();
            Err(anyhow!(error).context(format!("cannot run {name}")))
        }
    };
    // The volume first: an error of it counts more.
    served.end()?;
    Ok(Outcome::Status(code(ended?)))
}

/// Waits for the program; a signal to this process is one to the program.
fn wait(mut child: Child, served: &Served) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        // An interrupt from the terminal goes to the program by itself.
        if let Some(Event::Signal(signal)) = served.event()
            && signal != nix::sys::signal::Signal::SIGINT
            && let Some(signal) = Signal::from_named_raw(signal as i32)
        {
            // It may have ended this moment.
            let _ = kill_process(Pid::from_child(&child), signal);
        }
        std::thread::sleep(PAUSE);
    }
}

/// The exit status of a program as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
