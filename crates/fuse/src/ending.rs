//! The word of a server that it has ended.
//!
//! An unmount returns before the server has made the volume clean. So the server has a socket in the
//! abstract name space, and an unmount connects to it first; the answer comes at the end. No connection
//! is accepted before, so the socket takes no thread, and its queue is the bound.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{SystemTime, UNIX_EPOCH};

/// The word that the volume is clean and the image free.
const CLEAN: &str = "clean";

/// Time that a reader of the answer has for it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// The socket of a server.
#[derive(Debug)]
pub(crate) struct Ending {
    listener: UnixListener,
    name: String,
}

impl Ending {
    /// A socket of a name that is given nowhere else.
    pub(crate) fn new() -> std::io::Result<Self> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("undercroft-mount-{}-{}", std::process::id(), time.as_nanos());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, name })
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Says how the server ended.
    pub(crate) fn tell(&self, failure: Option<&str>) {
        while let Ok((mut waiter, _)) = self.listener.accept() {
            // One that has gone is not told.
            let _ = waiter.set_write_timeout(Some(PATIENCE));
            let _ = waiter.write_all(failure.unwrap_or(CLEAN).as_bytes());
        }
    }
}

/// Waits for the end of a server.
#[derive(Debug)]
pub struct EndOfServer(UnixStream);

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
        Ok(Self(UnixStream::connect_addr(&SocketAddr::from_abstract_name(socket)?)?))
    }

    /// Waits.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        let mut said = String::new();
        match self.0.read_to_string(&mut said) {
            Ok(_) if said == CLEAN => Ended::Clean,
            Ok(_) if !said.is_empty() => Ended::Failed(said),
            _ => Ended::Gone,
        }
    }
}
