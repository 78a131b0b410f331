//! The word of a server that it has ended.
//!
//! An unmount returns before the server has made the volume clean. So the server has a socket in the
//! abstract name space, and an unmount connects to it first; one word comes when the volume is not mounted
//! any more, and the answer at the end. No connection is accepted before, so the socket takes no
//! thread, and its queue is the bound.

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The word that it is mounted nowhere any more, and the volume is being made clean.
const BEGUN: &str = "unmounted\n";

/// The word that the volume is clean and the image free.
const CLEAN: &str = "clean";

/// Time that a reader of the answer has for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time that a process has to end when it has said that all is done.
const EXIT: Duration = Duration::from_secs(5);

/// The socket of a server.
#[derive(Debug)]
pub(crate) struct Ending {
    listener: UnixListener,
    name: String,
    /// Those that were told of its beginning.
    waiters: Mutex<Vec<UnixStream>>,
}

impl Ending {
    /// A socket of a name that is given nowhere else.
    pub(crate) fn new() -> std::io::Result<Self> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("undercroft-mount-{}-{}", std::process::id(), time.as_nanos());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, name, waiters: Mutex::default() })
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Says that the volume is not mounted any more.
    pub(crate) fn begin(&self) {
        self.say(BEGUN);
    }

    /// Says how the server ended.
    pub(crate) fn tell(&self, failure: Option<&str>) {
        self.say(failure.unwrap_or(CLEAN));
        self.waiters.lock().clear();
    }

    fn say(&self, word: &str) {
        let mut waiters = self.waiters.lock();
        while let Ok((waiter, _)) = self.listener.accept() {
            // One that has gone is not told.
            let _ = waiter.set_write_timeout(Some(PATIENCE));
            waiters.push(waiter);
        }
        waiters.retain_mut(|waiter| waiter.write_all(word.as_bytes()).is_ok());
    }
}

/// Waits for the end of a server.
#[derive(Debug)]
pub struct EndOfServer {
    socket: UnixStream,
    said: Vec<u8>,
    /// Its process, where that can be seen: it may run in another name space.
    process: Option<(u32, OwnedFd)>,
    is_asked: bool,
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The volume is clean and the image free.
    Clean,
    /// It could not leave the volume clean, for this reason.
    Failed(String),
    /// It did not say.
    Gone,
}

impl EndOfServer {
    /// Of the server with this socket; to be made before it is unmounted.
    ///
    /// # Errors
    /// There is no such socket here: the server runs in another network name space.
    pub fn of(socket: &str) -> std::io::Result<Self> {
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(socket)?)?;
        // The number may have come again if it has ended by now; then the connection has, too.
        let process = getsockopt(&socket, PeerCredentials).ok().and_then(|it| {
            let descriptor = pidfd_open(Pid::from_raw(it.pid())?, PidfdFlags::empty()).ok()?;
            Some((u32::try_from(it.pid()).ok()?, descriptor))
        });
        Ok(Self { socket, said: Vec::new(), process, is_asked: false })
    }

    /// The number of its process, if that can be seen from here.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.process.as_ref().map(|(number, _)| *number)
    }

    /// Waits until the volume is mounted nowhere any more, for so long; returns whether it is so.
    pub fn has_begun(&mut self, within: Option<Duration>) -> bool {
        if !self.said.is_empty() {
            return true;
        }
        let mut word = [0; 256];
        // No time at all is none that can be set.
        let within = within.map(|time| time.max(Duration::from_millis(1)));
        let answer =
            self.socket.set_read_timeout(within).and_then(|()| self.socket.read(&mut word));
        match answer {
            Ok(len) => self.said.extend(&word[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => return false,
            // The end of it says more.
            Err(_) => {}
        }
        true
    }

    /// Asks the server to end: whatever keeps the volume mounted sees errors from then on.
    ///
    /// # Errors
    /// Its process cannot be seen from here, or is that of another user.
    pub fn ask(&mut self) -> std::io::Result<()> {
        let Some((_, process)) = &self.process else {
            return Err(std::io::Error::other("its process is in another process name space"));
        };
        // The first asks it to unmount, and the second not to wait for others. Two of a kind could become one.
        pidfd_send_signal(process, Signal::TERM)?;
        pidfd_send_signal(process, Signal::INT)?;
        self.is_asked = true;
        Ok(())
    }

    /// Waits for the end.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        // It cannot be refused: the socket is open.
        let _ = self.socket.set_read_timeout(None);
        let is_said = self.socket.read_to_end(&mut self.said).is_ok();
        let said = String::from_utf8_lossy(&self.said);
        let last = said.strip_prefix(BEGUN).unwrap_or(&said);
        if is_said && last == CLEAN {
            self.wait_for_exit();
            Ended::Clean
        } else if is_said && !last.is_empty() {
            Ended::Failed(last.to_owned())
        } else {
            Ended::Gone
        }
    }

    /// Where it was still mounted, threads still answer: what they have is free when the process has
    /// ended.
    fn wait_for_exit(&self) {
        if let Some((_, process)) = self.process.as_ref().filter(|_| self.is_asked) {
            let time = EXIT.try_into().ok();
            // It is not this process that could fail.
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], time.as_ref());
        }
    }
}
