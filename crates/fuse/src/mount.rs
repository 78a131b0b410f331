//! A mounted volume, from its mount to its end.

use crate::failure::Log;
use crate::keeper::Keeper;
use crate::point::MountPoint;
use crate::protocol::{self, Ends, Translator};
use crate::server::Server;
use crate::status::Status;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use undercroft_fs::{AccessTimes, Clock, FileSystem};

/// How a volume is mounted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What the list of mounts names as the source.
    pub name: String,
    /// Nothing is changed.
    pub read_only: bool,
    /// Users other than that of the mount have access, as permissions say.
    pub allow_other: bool,
    /// Special files are devices.
    pub devices: bool,
    /// Setuid and setgid bits count.
    pub set_id: bool,
    /// Programs can be run.
    pub execute: bool,
    /// Which reads set times of access: the rule that the file system was opened with, as the list of
    /// mounts is to show it.
    pub access_times: AccessTimes,
    /// They are set by reads that the kernel's cache would answer, too. The server is told of each opening for
    /// that, which makes a cached one seven times as slow.
    pub exact_access_times: bool,
    /// Each write is durable when it returns.
    pub synchronous: bool,
    /// Each change of names is durable when it returns; it always is where writes are.
    pub synchronous_names: bool,
    /// The kernel may hold written data back: faster, and a lack of space shows when a file is
    /// closed or synced. Otherwise it shows at the write.
    pub write_back: bool,
    /// All files are shown to belong to this user.
    pub shown_uid: Option<u32>,
    /// All files are shown to belong to this group.
    pub shown_gid: Option<u32>,
    /// Threads that answer.
    pub threads: NonZeroUsize,
    /// Written data is durable after this time, without an fsync.
    pub checkpoint_interval: Duration,
}

impl Settings {
    /// A mount to change a volume, of what the list of mounts calls `name`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            read_only: false,
            allow_other: false,
            devices: false,
            set_id: false,
            execute: true,
            access_times: AccessTimes::Relative,
            exact_access_times: false,
            synchronous: false,
            synchronous_names: false,
            write_back: true,
            shown_uid: None,
            shown_gid: None,
            threads: default_threads(),
            checkpoint_interval: Duration::from_secs(5),
        }
    }
}

/// Two for each processor: some wait for the device. Of more than sixteen most would sleep.
fn default_threads() -> NonZeroUsize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::MIN.saturating_add((2 * processors).clamp(4, 16) - 1)
}

/// Where a volume is mounted.
#[derive(Debug)]
pub enum Target {
    /// At a directory.
    Directory(PathBuf),
    /// Another program has mounted it, and gave this descriptor of `/dev/fuse`.
    Connection(OwnedFd),
}

/// Why nothing was mounted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountFailure {
    /// The system does not mount it there.
    #[error("cannot mount at {}: {}", at.display(), explain(error))]
    Refused {
        /// Where.
        at: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The descriptor is none of a mount, or the mount is gone.
    #[error("the descriptor is not that of a FUSE mount that waits for its server: {0}")]
    Connection(#[source] io::Error),
    /// There is no thread left.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

fn explain(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound if !std::path::Path::new("/dev/fuse").exists() => {
            "; there is no /dev/fuse: load the kernel module `fuse`, or give the container the device \
             (`--device /dev/fuse`)"
        }
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_some() => {
            "; /dev/fuse may not be opened: some systems let only root (`chmod 666 /dev/fuse`)"
        }
        _ if error.to_string().contains("No such file") => {
            "; without the rights of root the program `fusermount3` is needed (package fuse3), or a \
             user namespace (`unshare -Urm`)"
        }
        _ => "",
    };
    format!("{}{remedy}", error.to_string().trim_end())
}

/// A mounted volume. Dropped without [`finish`](Self::finish) it is left as a crash would.
#[derive(Debug)]
pub struct Mount {
    server: Arc<Server>,
    keeper: Keeper,
    ends: Ends,
    point: Option<MountPoint>,
}

impl Mount {
    /// Mounts a file system, and answers until it is unmounted. `ended` is called then.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn new(
        fs: FileSystem,
        target: Target,
        settings: &Settings,
        log: Log,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, MountFailure> {
        // The kernel counts the times of writes.
        let fs = if fs.clock() == Clock::System { fs.with_clock(Clock::Kernel) } else { fs };
        let shown = (settings.shown_uid, settings.shown_gid);
        let server = Server::new(fs, settings.name.clone(), shown, log);
        let keeper =
            Keeper::start(&server, settings.checkpoint_interval).map_err(MountFailure::Thread)?;
        let started = Translator::new(Arc::clone(&server), settings)
            .map_err(MountFailure::Thread)
            .and_then(|translator| protocol::start(translator, target, settings, ended));
        match started {
            Ok((ends, point)) => {
                if let Some(listed) = point.as_ref().and_then(MountPoint::listed) {
                    // It is empty.
                    let _ = server.mounted.set(listed);
                }
                Ok(Self { server, keeper, ends, point })
            }
            Err(failure) => {
                // The volume is as clean as it was; why it is not mounted counts more.
                let _ = finish(server, keeper);
                Err(failure)
            }
        }
    }

    /// The mount, unless another program has made it.
    #[must_use]
    pub fn point(&self) -> Option<&MountPoint> {
        self.point.as_ref()
    }

    /// The state now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.server.status()
    }

    /// Makes everything durable that reached the server.
    ///
    /// # Errors
    /// The device failed.
    pub fn sync(&self) -> Result<(), undercroft_fs::Error> {
        if self.server.fs.is_writable() { self.server.fs.sync_and_wait() } else { Ok(()) }
    }

    /// Waits until it is unmounted, and leaves the volume clean.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> Result<Finished, undercroft_fs::Error> {
        match self.ends.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.server.failures.log().line(&format!("the connection ended: {error}"));
            }
            Err(_) => self.server.failures.log().line("a thread that answers has panicked"),
        }
        finish(self.server, self.keeper)
    }

    /// Leaves the volume clean although it is still mounted: programs that use it see errors from
    /// now on, and what the kernel still holds back is lost.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn abandon(self) -> Result<Finished, undercroft_fs::Error> {
        finish(self.server, self.keeper)
    }
}

fn finish(server: Arc<Server>, keeper: Keeper) -> Result<Finished, undercroft_fs::Error> {
    if let Some(ending) = &server.ending {
        ending.begin();
    }
    keeper.stop();
    server.nodes.clear();
    let closed = if server.fs.is_writable() { server.fs.close() } else { Ok(()) };
    if let (Err(error), Some(ending)) = (&closed, &server.ending) {
        ending.tell(Some(&error.to_string()));
    }
    closed.map(|()| Finished { server })
}

/// A volume that was left clean.
#[derive(Debug)]
pub struct Finished {
    server: Arc<Server>,
}

impl Finished {
    /// Frees the image, and tells the programs that wait for it.
    pub fn release(self) {
        let Self { server } = self;
        match Arc::try_unwrap(server) {
            Ok(Server { fs, ending, .. }) => {
                drop(fs);
                if let Some(ending) = ending {
                    ending.tell(None);
                }
            }
            // A thread still answers; the image is free when the process ends.
            Err(server) => {
                if let Some(ending) = &server.ending {
                    ending.tell(None);
                }
            }
        }
    }
}
