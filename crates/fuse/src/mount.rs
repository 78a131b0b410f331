//! A mounted volume, from its mount to its end.

use crate::failure::Log;
use crate::keeper::Keeper;
use crate::point::MountPoint;
use crate::protocol::{self, Ends, Translator};
use crate::server::Server;
use crate::settings::{MountFailure, Settings, Target};
use crate::status::Status;
use std::sync::Arc;
use undercroft_fs::{Clock, FileSystem};

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
        // A kernel that may hold data back says the times of all files, however they are changed.
        let fs = if settings.holds_data_back() { fs.with_kept_times() } else { fs };
        let shown = (settings.shown_uid, settings.shown_gid);
        let server = Server::new(fs, settings.name.clone(), shown, log);
        let keeper = Keeper::start(&server, settings.checkpoint_interval, settings.discard)
            .map_err(MountFailure::Thread)?;
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
