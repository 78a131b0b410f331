//! A program that runs while a volume is mounted.
//!
//! The server is a process of its own: it ends in order although this one is killed, and this one takes
//! the mount away should the server be.

use super::background::{self, Background};
use super::serve::{self, Event};
use super::{Args, private_place};
use crate::child;
use crate::commands::unmount::Unmounting;
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow, bail};
use process_wrap::std::ChildWrapper;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use undercroft_fuse::{InUse, MountPoint, UnmountFailure};

/// Names the directory of the mount to the program.
const PLACE: &str = "UNDERCROFT_MOUNT";

/// Time between two looks at the program and at signals.
const PAUSE: Duration = Duration::from_millis(10);

/// Mounts, runs the program, unmounts; the outcome is the program's.
pub(super) fn run(args: &Args) -> Result<Outcome> {
    let place = args.directory.as_deref().unwrap_or(Path::new("a private directory"));
    let server = match background::start(&place.display().to_string(), true)? {
        Ok(server) => server,
        Err(ended) => return Ok(ended),
    };
    let ended = run_program(args, server.directory.as_deref());
    // The volume first: an error of it counts more.
    end(args, server)?;
    Ok(Outcome::Status(code(ended?)))
}

fn run_program(args: &Args, place: Option<&Path>) -> Result<ExitStatus> {
    let (program, arguments) = args.exec.split_first().context("no program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(place) = place {
        command.env(PLACE, place);
        if args.directory.is_none() {
            command.current_dir(place);
        }
    }
    let (sender, signals) = channel();
    // Before the program is there: what it is sent through this process is to reach it.
    serve::signals().thread_block().context("cannot block signals")?;
    serve::wait_for_signals(sender)?;
    let child = child::spawn(command).map_err(|error| {
        let name = Path::new(program).display();
        anyhow!(error).context(format!("cannot run {name}"))
    })?;
    wait(child, &signals)
}

/// Waits for the program; a signal to this process is one to the program.
fn wait(mut child: Box<dyn ChildWrapper>, signals: &Receiver<Event>) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok(status);
        }
        // An interrupt from the terminal goes to the program by itself.
        if let Ok(Event::Signal(signal)) = signals.try_recv()
            && signal != nix::sys::signal::Signal::SIGINT
        {
            // It may have ended this moment.
            let _ = child.signal(signal as i32);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Unmounts, and waits for the end of the server.
fn end(args: &Args, server: Background) -> Result<()> {
    let Background { mut process, directory } = server;
    let ended = match &directory {
        Some(directory) => unmount(args, directory),
        None => Err(anyhow!("it was mounted by another program, which is to unmount it")),
    };
    // Otherwise it goes on by itself, until it can end.
    if ended.is_ok() {
        process.wait().context("cannot wait for the server")?;
    }
    ended
}

fn unmount(args: &Args, directory: &Path) -> Result<()> {
    let is_private = args.directory.is_none();
    let point = MountPoint::at(directory).context("cannot look at the mount")?;
    let Some(unmounting) = Unmounting::of(point)? else {
        if is_private {
            private_place::remove(directory);
        }
        bail!(
            "the server ended before the program; what was synced is in the journal of the volume"
        );
    };
    match unmounting.detach(InUse::Refuse) {
        Err(UnmountFailure::InUse(_)) if !is_private => unmounting.detach(InUse::Detach)?,
        // What the program has mounted there and left behind goes as well.
        Err(UnmountFailure::InUse(_) | UnmountFailure::Covered { .. }) if is_private => {
            unmounting.detach(InUse::DetachAll)?;
        }
        done => done?,
    }
    if is_private {
        private_place::remove(directory);
    }
    unmounting.wait(Some(Duration::from_secs(args.timeout)))
}

/// The exit status of a program as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
