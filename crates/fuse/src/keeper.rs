//! The thread that makes durable what no program asks for, lets go of idle files, and sees what other options
//! the mount gets (`mount -o remount,ro`).

use crate::mounts::parse_all;
use crate::server::Server;
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Least time between two looks at the list of mounts, which can be long, and change often.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Keeper {
    /// Closed to end the thread.
    running: PipeWriter,
    thread: JoinHandle<()>,
}

/// Why the thread is awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awake {
    Stopped,
    /// The list of mounts has changed.
    Mounts,
    Time,
}

impl Keeper {
    pub(crate) fn start(
        server: &Arc<Server>,
        interval: Duration,
        discard: bool,
    ) -> io::Result<Self> {
        let (stopped, running) = io::pipe()?;
        let server = Arc::clone(server);
        // It may be missing; then a volume is clean when it is unmounted.
        let mut mounts = Watch::new().ok();
        let keep = move || {
            let mut next = Instant::now() + interval;
            if discard && server.fs.is_writable() {
                // From here on it is noted what becomes free.
                server.discard_freed();
            }
            loop {
                match wait(&stopped, mounts.as_ref().map(|mounts| &mounts.list), next) {
                    Awake::Stopped => return,
                    Awake::Mounts => {
                        if wait(&stopped, None, Instant::now() + PAUSE) == Awake::Stopped {
                            return;
                        }
                    }
                    Awake::Time => {
                        next = Instant::now() + interval;
                        server.let_go();
                        if server.fs.is_writable() {
                            if discard {
                                server.discard_freed();
                            }
                            server.checkpoint();
                        }
                    }
                }
                if let Some(mounts) = &mut mounts {
                    // One that cannot be read says nothing.
                    let _ = mounts.look(&server);
                }
            }
        };
        let thread = Builder::new().name("keeper".into()).spawn(keep)?;
        Ok(Self { running, thread })
    }

    pub(crate) fn stop(self) {
        drop(self.running);
        // A panic has been printed.
        let _ = self.thread.join();
    }
}

/// Waits until then, or until something happens.
fn wait(stopped: &PipeReader, mounts: Option<&File>, until: Instant) -> Awake {
    loop {
        let mut events = vec![PollFd::new(stopped, PollFlags::IN)];
        // It can be read at any time; changes are urgent.
        events.extend(mounts.map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        let time = until.saturating_duration_since(Instant::now());
        match poll(&mut events, time.try_into().ok().as_ref()) {
            Ok(1..) if !events[0].revents().is_empty() => return Awake::Stopped,
            // However often the list changes.
            _ if Instant::now() >= until => return Awake::Time,
            Ok(1..) => return Awake::Mounts,
            // A signal.
            _ => {}
        }
    }
}

/// The list of mounts, and the options that the mount had there when it was looked at last.
struct Watch {
    list: File,
    options: Option<String>,
}

impl Watch {
    fn new() -> io::Result<Self> {
        Ok(Self { list: File::open("/proc/self/mountinfo")?, options: None })
    }

    /// Has the server follow what the list says.
    fn look(&mut self, server: &Server) -> io::Result<()> {
        let Some(mounted) = server.mounted.get().filter(|_| server.fs.is_writable()) else {
            return Ok(());
        };
        let mut list = Vec::new();
        self.list.rewind()?;
        self.list.read_to_end(&mut list)?;
        if let Some(now) = parse_all(&list).find(|mount| mount.device == mounted.device) {
            let before = self.options.as_ref().unwrap_or(&mounted.options);
            server.follow(&now, before);
            self.options = Some(now.options);
        }
        Ok(())
    }
}
