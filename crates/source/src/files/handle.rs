//! An open directory and the files opened in it.

use super::links::Identity;
use crate::FileError;
use crate::{EntryPath, Metadata, Timestamp};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: OwnedFd,
    /// Path relative to the root of the source.
    pub(crate) path: Arc<EntryPath>,
}

impl Handle {
    /// Opens the root of a source; a symbolic link is followed.
    pub(crate) fn root(path: &Path) -> Result<Self, Errno> {
        let fd = open_quietly(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self { fd, path: Arc::new(EntryPath::root()) })
    }

    /// Opens a directory in this one. `path` is its path from the root.
    pub(crate) fn directory(&self, name: &[u8], path: &Arc<EntryPath>) -> Result<Self, FileError> {
        self.enter(name, Arc::clone(path)).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => FileError::Replaced { path: path.as_ref().clone() },
            error => FileError::read("open", path, error),
        })
    }

    /// The same, with the error of the system. A symbolic link is not followed.
    pub(crate) fn enter(&self, name: &[u8], path: Arc<EntryPath>) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        Ok(Self { fd: open_quietly(&self.fd, name, flags)?, path })
    }

    /// Opens the directory that contains this one.
    pub(crate) fn parent(&self, path: &Arc<EntryPath>) -> Result<Self, FileError> {
        self.directory(b"..", path)
    }

    /// Opens the regular file `name` in this directory. Does not wait if it became a pipe.
    pub(crate) fn file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        open_quietly(&self.fd, name, flags)
    }

    /// What the system knows about the directory itself.
    pub(crate) fn stat(&self) -> Result<Stat, FileError> {
        fstat(&self.fd).map_err(|error| FileError::read("examine", &self.path, error))
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens without changing the access time where the system allows that: only for the owner.
fn open_quietly(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    match openat(&directory, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(&directory, name, flags, Mode::empty()),
        other => other,
    }
}

/// What tells the file apart from others.
#[allow(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
pub(crate) fn identity(stat: &Stat) -> Identity {
    Identity { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
}

/// How many names the file has.
#[allow(clippy::unnecessary_cast, reason = "the width differs between architectures")]
pub(crate) fn links(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}

/// Permission bits, owner and modification time.
#[allow(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
pub(crate) fn metadata(stat: &Stat) -> Metadata {
    let (seconds, nanoseconds) = (stat.st_mtime as i64, stat.st_mtime_nsec as u32);
    Metadata {
        mode: (stat.st_mode & 0o7777) as u16,
        uid: stat.st_uid,
        gid: stat.st_gid,
        mtime: Timestamp { seconds, nanoseconds },
    }
}
