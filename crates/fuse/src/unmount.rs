//! The end of a mount, asked for from outside or by its own server.

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
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

/// Unmounts what is mounted at a directory. A mount that stays in use is given up after a second.
///
/// # Errors
/// It is in use; the caller may not; there is no mount.
pub fn unmount(at: &Path, in_use: InUse) -> Result<(), UnmountFailure> {
    for pause in PAUSES {
        match attempt(at, in_use) {
            Err(UnmountFailure::InUse(_)) => thread::sleep(Duration::from_millis(pause)),
            done => return done,
        }
    }
    attempt(at, in_use)
}

fn attempt(at: &Path, in_use: InUse) -> Result<(), UnmountFailure> {
    let flags = match in_use {
        InUse::Refuse => MntFlags::empty(),
        InUse::Detach => MntFlags::MNT_DETACH,
    };
    let name = at.display().to_string();
    match umount2(at, flags | MntFlags::UMOUNT_NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::EBUSY) => Err(UnmountFailure::InUse(name)),
        Err(Errno::EPERM) => unmount_by_helper(at, in_use),
        Err(error) => Err(UnmountFailure::Refused { at: name, why: error.desc().into() }),
    }
}

/// Lets the program with the rights for it unmount: users may not do it themselves.
fn unmount_by_helper(at: &Path, in_use: InUse) -> Result<(), UnmountFailure> {
    let mut command = Command::new("fusermount3");
    command.arg("-u").stdin(Stdio::null());
    if in_use == InUse::Detach {
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
