//! Where in the destination the work is: one open directory, and the way back up.

use super::failed::failed;
use crate::unpack::UnpackError;
use crate::unpack::sink::Item;
use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Device and inode of a directory.
type Identity = (u64, u64);

/// A place below the destination.
pub(super) struct WorkingDirectory {
    root: OwnedFd,
    current: File,
    /// Identities of the directories above the present one, the destination first.
    above: Vec<Identity>,
}

impl WorkingDirectory {
    /// Opens the destination, which is made if it does not exist.
    pub(super) fn open(path: &Path, replace: bool) -> Result<Self, UnpackError> {
        let failed = |source: io::Error| UnpackError::Destination { path: path.to_owned(), source };
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error.into())),
        }
        // The destination itself may be named through a symbolic link.
        let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
        let open = || rustix::fs::openat(CWD, path, flags, Mode::empty());
        let root = open().map_err(|error| failed(error.into()))?;
        if !replace && !is_empty(&root).map_err(|error| failed(error.into()))? {
            return Err(UnpackError::NotEmpty(path.to_owned()));
        }
        let current = File::from(root.try_clone().map_err(failed)?);
        Ok(Self { root, current, above: Vec::new() })
    }

    /// The directory in which names are made.
    pub(super) fn current(&self) -> BorrowedFd<'_> {
        self.current.as_fd()
    }

    /// Makes the directory of `item` in the present one and goes there.
    pub(super) fn descend(&mut self, item: &Item<'_>, replace: bool) -> Result<(), UnpackError> {
        let name = item.name();
        let open = || rustix::fs::openat(&self.current, name, DIRECTORY, Mode::empty());
        let make = || rustix::fs::mkdirat(&self.current, name, Mode::RWXU);
        let inner = match make() {
            Err(Errno::EXIST) if replace => match open() {
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    rustix::fs::unlinkat(&self.current, name, rustix::fs::AtFlags::empty())
                        .and_then(|()| make())
                        .and_then(|()| open())
                }
                opened => opened,
            },
            made => made.and_then(|()| open()),
        };
        let inner = inner.map_err(|error| failed("create", item, error))?;
        if replace {
            // Only its owner may work in a directory while it is being filled.
            rustix::fs::fchmod(&inner, Mode::RWXU).map_err(|error| failed("open", item, error))?;
        }
        let above = identity(self.current()).map_err(|error| failed("look at", item, error))?;
        self.above.push(above);
        self.current = File::from(inner);
        Ok(())
    }

    /// Goes back to the directory above, which must be the one that was left; returns the one
    /// below. The destination itself stays where it is.
    pub(super) fn ascend(&mut self, item: &Item<'_>) -> Result<File, UnpackError> {
        let Some(expected) = self.above.pop() else {
            let copy = self.current.try_clone();
            return copy.map_err(|source| UnpackError::Create {
                action: "open",
                path: item.text(),
                source,
            });
        };
        let parent = rustix::fs::openat(&self.current, c"..", DIRECTORY, Mode::empty())
            .map_err(|error| failed("leave", item, error))?;
        let found = identity(parent.as_fd()).map_err(|error| failed("look at", item, error))?;
        if found != expected {
            return Err(UnpackError::Moved { path: item.text() });
        }
        Ok(std::mem::replace(&mut self.current, File::from(parent)))
    }

    /// The directory that holds `path`, for a link; `None` if it is the present one.
    pub(super) fn find(
        &self,
        item: &Item<'_>,
        path: &[u8],
    ) -> Result<Option<OwnedFd>, UnpackError> {
        let parent =
            |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash);
        let wanted = &path[..parent(path)];
        if wanted == &item.path[..parent(item.path)] {
            return Ok(None);
        }
        let flags = DIRECTORY.difference(OFlags::RDONLY).union(OFlags::PATH);
        let step = |from: BorrowedFd<'_>, name: &[u8]| {
            rustix::fs::openat(from, name, flags, Mode::empty())
                .map_err(|error| failed("find what is to be linked to", item, error))
        };
        let mut directory = step(self.root.as_fd(), b".")?;
        for name in wanted.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            directory = step(directory.as_fd(), name)?;
        }
        Ok(Some(directory))
    }
}

fn identity(directory: BorrowedFd<'_>) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn is_empty(directory: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}
