//! The server: a volume mounted until it is unmounted, or a signal asks for that.

use super::capabilities;
use super::confine::confine;
use super::log::Destination;
use super::notify::notify;
use super::private_place::{self, PrivatePlace};
use super::target::{Place, place, settle};
use super::{Args, Plan, background};
use crate::image::OpenToMount;
use crate::report::Outcome;
use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{SigSet, Signal};
use rustix::process::geteuid;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use undercroft_block::Unchanging;
use undercroft_fuse::{InUse, Mount, MountPoint, UnmountFailure};

/// What a server waits for.
pub(super) enum Event {
    /// The volume was unmounted.
    Unmounted,
    /// A signal asks it to end.
    Signal(Signal),
    /// The command that runs a program has ended, by itself or by force.
    Orphaned,
}

/// A mounted volume, and what happens to it.
struct Served {
    mount: Mount,
    directory: Option<PathBuf>,
    /// The directory is its own, and goes with the mount.
    is_private: bool,
    destination: Destination,
    events: Receiver<Event>,
    /// Whether a part of the image is behind a network.
    networks: bool,
    _unchanging: Vec<Unchanging>,
}

/// Time after which an end that is not there is worth a word.
const SILENCE: Duration = Duration::from_secs(1);

/// Signals that ask a server to end. They are blocked in all threads, and waited for by one.
pub(super) fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect()
}

/// Mounts. To be called before the process has threads: all of them get its signal mask.
fn mount(args: &Args, plan: &Plan, argument: &Path) -> Result<Served> {
    signals().thread_block().context("cannot block signals")?;
    if geteuid().is_root() {
        capabilities::give_up().context("cannot give rights up")?;
    }
    let destination = Destination::new(args.log.as_deref())?;
    let Place { target, directory } = place(argument)?;
    let OpenToMount { fs, unchanging } = args.image.open_for_mount(&plan.wish)?;
    let mut settings = plan.settings.clone();
    settings.read_only = !fs.is_writable();
    fs.volume().cache().set_limit(plan.memory);
    let (sender, events) = channel();
    wait_for_signals(sender.clone())?;
    if !args.exec.is_empty() {
        wait_for_starter(sender.clone())?;
    }
    let log = destination.log();
    let ended = move || {
        // The receiver is gone if it has ended already.
        let _ = sender.send(Event::Unmounted);
    };
    let mount = Mount::new(fs, target, &settings, log, ended)?;
    let networks = args.image.uses_networks();
    let is_private = args.directory.is_none();
    let served = Served {
        mount,
        directory,
        is_private,
        destination,
        events,
        networks,
        _unchanging: unchanging,
    };
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

/// Sends an event for each signal, which must be blocked.
pub(super) fn wait_for_signals(sender: Sender<Event>) -> Result<()> {
    let wait = move || {
        while let Ok(signal) = signals().wait()
            && sender.send(Event::Signal(signal)).is_ok()
        {}
    };
    thread::Builder::new().name("signals".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}

/// Sends an event when the standard input ends, which is a pipe of the process that has started this one.
/// No signal tells that: the kernel sends it once for each thread of that process.
fn wait_for_starter(sender: Sender<Event>) -> Result<()> {
    let wait = move || {
        while std::io::stdin().read(&mut [0; 64]).is_ok_and(|len| len > 0) {}
        // The receiver is gone if it has ended already.
        let _ = sender.send(Event::Orphaned);
    };
    thread::Builder::new().name("starter".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}

/// Serves at a directory until the end.
pub(super) fn in_foreground(args: &Args, plan: &Plan, directory: &Path) -> Result<Outcome> {
    let served = mount(args, plan, directory)?;
    served.confine();
    notify("READY=1");
    served.wait().map(|()| Outcome::Done)
}

/// Serves in a session of its own until the end; for a program, no longer than the command lives that
/// runs it.
pub(super) fn in_background(args: &Args, plan: &Plan) -> Result<Outcome> {
    background::leave_session();
    let is_for_program = !args.exec.is_empty();
    let private = if args.directory.is_none() { Some(PrivatePlace::new()?) } else { None };
    let directory = private.as_ref().map(PrivatePlace::path).or(args.directory.as_deref());
    let served = mount(args, plan, directory.context("DIR is missing")?)?;
    let destination = served.destination.clone();
    // Before others can cause something to be said. What is said beside a program is for its caller.
    if !is_for_program {
        destination.go_to_background();
    }
    let null = background::open_null()?;
    served.confine();
    background::say_ready(served.directory.as_deref(), &null, is_for_program)?;
    notify("READY=1");
    let ended = served.wait();
    if let Err(error) = &ended {
        destination.line(&format!("{error:#}"));
    }
    // All that waits for this process has its words by now.
    Ok(if ended.is_ok() { Outcome::Done } else { Outcome::Status(1) })
}

impl Served {
    /// Gives up what it does not need any more, where that is possible: a user's mount is ended by
    /// `fusermount3`, which has its rights by its owner, and a confined process cannot start that; and
    /// of a mount of another program it is not known when the library has opened all it needs.
    fn confine(&self) {
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
            Ok(Event::Signal(_) | Event::Orphaned) => self.end(),
        }
    }

    /// Unmounts in an orderly way; another signal ends that.
    fn end(self) -> Result<()> {
        notify("STOPPING=1");
        let Some(point) = self.mount.point().cloned() else {
            // Whose mount it is, unmounts it.
            return self.abandon("it was mounted by another program, which is to unmount it");
        };
        let (destination, is_private) = (self.destination.clone(), self.is_private);
        // It may take as long as the device does.
        let work = move || detach(&point, is_private, &destination);
        thread::Builder::new().name("unmount".into()).spawn(work)?;
        loop {
            match self.events.recv() {
                Ok(Event::Unmounted) | Err(_) => return self.finish(),
                Ok(Event::Signal(signal)) => {
                    return self.abandon(&format!("a second signal ({signal})"));
                }
                Ok(Event::Orphaned) => {}
            }
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

/// Takes the mount away as soon as nothing is mounted on it, and says who keeps the volume.
fn detach(point: &MountPoint, is_private: bool, destination: &Destination) {
    let mut in_use = InUse::Refuse;
    let mut told = String::new();
    loop {
        match point.unmount(in_use) {
            Ok(()) => break,
            // Someone else has detached it.
            Err(UnmountFailure::Gone(_)) => break,
            Err(error @ UnmountFailure::InUse(_)) => {
                destination.line(&format!(
                    "{error}. It has no new users now, and ends with its last; another signal ends it \
                     at once"
                ));
                in_use = if is_private { InUse::DetachAll } else { InUse::Detach };
            }
            Err(error @ UnmountFailure::Covered { .. }) if is_private => {
                destination.line(&format!("{error}, or it goes as well"));
                in_use = InUse::DetachAll;
            }
            Err(error @ UnmountFailure::Covered { .. }) => {
                let line = format!("{error}. It ends then; another signal ends it at once");
                if line != told {
                    destination.line(&line);
                    told = line;
                }
                thread::sleep(SILENCE);
            }
            Err(error) => return destination.line(&error.to_string()),
        }
    }
    if is_private {
        private_place::remove(point.directory());
    }
    thread::sleep(SILENCE);
    for holder in point.holders() {
        destination.line(&format!(
            "{} is unmounted, but {holder} keeps its volume; another signal takes it from there",
            point.directory().display()
        ));
    }
}
