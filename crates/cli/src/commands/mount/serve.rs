//! The server: a volume mounted until it is unmounted, or a signal asks for that.

use super::capabilities;
use super::confine::confine;
use super::log::Destination;
use super::notify::notify;
use super::target::{Place, place, settle};
use super::{Args, Plan, background};
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{SigSet, Signal};
use rustix::process::geteuid;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use undercroft_fuse::{InUse, Mount, UnmountFailure, unmount};

/// What a server waits for.
pub(super) enum Event {
    /// The volume was unmounted.
    Unmounted,
    /// A signal asks it to end.
    Signal(Signal),
}

/// A mounted volume, and what happens to it.
pub(super) struct Served {
    mount: Mount,
    pub(super) directory: Option<PathBuf>,
    pub(super) destination: Destination,
    events: Receiver<Event>,
    /// Whether a part of the image is behind a network.
    networks: bool,
}

/// Signals that ask a server to end. They are blocked in all threads, and waited for by one.
fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// Mounts. To be called before the process has threads: all of them get its signal mask.
pub(super) fn mount(args: &Args, plan: &Plan, argument: &Path) -> Result<Served> {
    signals().thread_block().context("cannot block signals")?;
    if geteuid().is_root() {
        capabilities::give_up().context("cannot give rights up")?;
    }
    let destination = Destination::new(args.log.as_deref())?;
    let Place { target, directory } = place(argument)?;
    let limit = args.device_timeout.map(Duration::from_secs);
    let fs = args.image.open_for_mount(&plan.open, plan.part, plan.no_replay, limit)?;
    fs.volume().cache().set_limit(plan.memory);
    let (sender, events) = channel();
    wait_for_signals(sender.clone())?;
    let log = destination.log();
    let ended = move || {
        // The receiver is gone if it has ended already.
        let _ = sender.send(Event::Unmounted);
    };
    let mount = Mount::new(fs, target, &plan.settings, log, ended)?;
    let networks = args.image.uses_networks();
    let served = Served { mount, directory, destination, events, networks };
    let settled = served.directory.as_deref().map_or(Ok(None), settle);
    match settled {
        Ok(Some(note)) if args.foreground => served.destination.line(&note),
        Ok(_) => {}
        Err(error) => {
            served.end()?;
            return Err(error);
        }
    }
    Ok(served)
}

fn wait_for_signals(sender: Sender<Event>) -> Result<()> {
    let wait = move || {
        while let Ok(signal) = signals().wait()
            && sender.send(Event::Signal(signal)).is_ok()
        {}
    };
    thread::Builder::new().name("signals".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}

/// Serves at a directory until the end.
pub(super) fn run(
    args: &Args,
    plan: &Plan,
    directory: &Path,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let is_background = !args.foreground;
    if is_background {
        background::leave_session();
    }
    let served = mount(args, plan, directory)?;
    let destination = served.destination.clone();
    if is_background {
        // Before others can cause something to be said.
        destination.go_to_background();
        let null = background::open_null()?;
        served.confine();
        background::say_ready(out, &null)?;
    } else {
        served.confine();
    }
    notify("READY=1");
    let ended = served.wait();
    if let Err(error) = &ended
        && is_background
    {
        destination.line(&format!("{error:#}"));
    }
    ended.map(|()| Outcome::Done)
}

impl Served {
    /// Gives up what it does not need any more, where that is possible: a user's mount is ended by
    /// `fusermount3`, which has its rights by its owner, and a confined process cannot start that; and
    /// of a mount of another program it is not known when the library has opened all it needs.
    pub(super) fn confine(&self) {
        // The mount has answered, with a thread that was started after all openings.
        if self.directory.is_none() || !geteuid().is_root() {
            return;
        }
        if let Err(error) = confine(self.networks) {
            self.destination.line(&format!("system calls are not filtered: {error}"));
        }
    }

    /// Waits until it is unmounted, or a signal asks for that.
    fn wait(self) -> Result<()> {
        match self.events.recv() {
            Ok(Event::Unmounted) | Err(_) => self.finish(),
            Ok(Event::Signal(_)) => self.end(),
        }
    }

    /// The next event.
    pub(super) fn event(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Unmounts in an orderly way; another signal ends that.
    pub(super) fn end(self) -> Result<()> {
        notify("STOPPING=1");
        let Some(directory) = self.directory.clone() else {
            // Whose mount it is, unmounts it.
            return self.abandon("it was mounted by another program, which is to unmount it");
        };
        let (destination, at) = (self.destination.clone(), directory.clone());
        let work = move || {
            match unmount(&at, InUse::Refuse) {
                Err(error @ UnmountFailure::InUse(_)) => {
                    destination.line(&format!(
                        "{error}. It has no new users now, and ends with its last; another signal \
                         ends it at once"
                    ));
                    unmount(&at, InUse::Detach)
                }
                other => other,
            }
            .unwrap_or_else(|error| destination.line(&error.to_string()));
        };
        // It may take as long as the device does.
        thread::Builder::new().name("unmount".into()).spawn(work)?;
        match self.events.recv() {
            Ok(Event::Unmounted) | Err(_) => self.finish(),
            Ok(Event::Signal(signal)) => self.abandon(&format!("a second signal ({signal})")),
        }
    }

    /// It was unmounted: the volume is left clean and the image free.
    fn finish(self) -> Result<()> {
        self.mount.finish().context("the volume could not be left clean")?.release();
        Ok(())
    }

    fn abandon(self, why: &str) -> Result<()> {
        let finished = self.mount.abandon().context("the volume could not be left clean")?;
        finished.release();
        Err(anyhow!(
            "ended while it was mounted: {why}. What was synced is in the volume, which is clean"
        ))
    }
}
