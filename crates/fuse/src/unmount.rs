//! The end of a mount, asked for from outside or by its own server.

use crate::point::MountPoint;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Whether a mount that is in use goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InUse {
    /// It stays, and that is an error.
    Refuse,
    /// It gets no new users, and goes with the last that it has.
    Detach,
    /// The same, and what is mounted on it goes with it.
    DetachAll,
}

/// Why a mount did not go.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UnmountFailure {
    /// Programs have files or directories of it open.
    #[error(
        "{0} is in use; `fuser -vm {0}` lists the programs. Unmount it when they have ended, or with \
         --lazy, which waits for them"
    )]
    InUse(String),
    /// Another mount is on it, which would go as well.
    #[error("{at} stays: {other} is mounted on it; unmount that first")]
    Covered {
        /// Where.
        at: String,
        /// The other mount: its file system and its directory.
        other: String,
    },
    /// It is not mounted any more.
    #[error("{0} is not mounted any more")]
    Gone(String),
    /// The system says no.
    #[error("cannot unmount {at}: {why}")]
    Refused {
        /// Where.
        at: String,
        /// Why not.
        why: String,
    },
}

/// Pauses in milliseconds before a mount that is in use is tried again. A program that has just ended, or one that
/// another is being started from, may have a file of it for a moment.
const PAUSES: [u64; 7] = [1, 5, 20, 50, 100, 300, 500];

impl MountPoint {
    /// Unmounts it, and nothing else: not what is mounted over it, below it, or at its directory by now.
    /// A mount that stays in use is given up after a second.
    ///
    /// # Errors
    /// It is in use; another mount is on it; it is gone; the caller may not.
    pub fn unmount(&self, in_use: InUse) -> Result<(), UnmountFailure> {
        for pause in PAUSES {
            match self.attempt(in_use) {
                Err(UnmountFailure::InUse(_)) => thread::sleep(Duration::from_millis(pause)),
                done => return done,
            }
        }
        self.attempt(in_use)
    }

    fn attempt(&self, in_use: InUse) -> Result<(), UnmountFailure> {
        let name = self.directory().display().to_string();
        // The way to a file system leads through its path, which a later mount may have by now.
        if in_use != InUse::DetachAll
            && let Some(other) = self.mounted_on_it()
        {
            let other = format!("{} at {}", other.kind, other.directory.display());
            return Err(UnmountFailure::Covered { at: name, other });
        }
        if !self.is_on_top() {
            return match self.listed() {
                Some(now) if now.directory != self.directory() => {
                    self.moved_to(now.directory).attempt(in_use)
                }
                Some(_) => {
                    Err(UnmountFailure::Covered { at: name, other: "another file system".into() })
                }
                None => Err(UnmountFailure::Gone(name)),
            };
        }
        let flags = match in_use {
            InUse::Refuse => UnmountFlags::empty(),
            InUse::Detach | InUse::DetachAll => UnmountFlags::DETACH,
        };
        match rustix::mount::unmount(self.directory(), flags | UnmountFlags::NOFOLLOW) {
            Ok(()) => Ok(()),
            Err(Errno::BUSY) => Err(UnmountFailure::InUse(name)),
            Err(Errno::PERM) => unmount_by_helper(self.directory(), in_use),
            Err(error) => {
                Err(UnmountFailure::Refused { at: name, why: io::Error::from(error).to_string() })
            }
        }
    }
}

/// Lets the program with the rights for it unmount: users may not do it themselves.
fn unmount_by_helper(at: &Path, in_use: InUse) -> Result<(), UnmountFailure> {
    let mut command = Command::new("fusermount3");
    command.arg("-u").stdin(Stdio::null());
    if in_use != InUse::Refuse {
        command.arg("-z");
    }
    let name = at.display().to_string();
    let refused = |why: String| UnmountFailure::Refused { at: name.clone(), why };
    let output = command.arg("--").arg(at).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused(
            "only root may, and the program `fusermount3`, which is missing (package fuse3)".into(),
        ),
        _ => refused(format!("fusermount3: {error}")),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else if said.contains("busy") {
        Err(UnmountFailure::InUse(name))
    } else {
        Err(refused(said.trim().to_owned()))
    }
}
