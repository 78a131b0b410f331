//! Owner, attributes, mode and times of files that were made, in the order in which they do not
//! undo each other: a new owner clears setuid bits and capabilities, and every change moves the
//! times.

use super::failed::failed;
use crate::unpack::UnpackError;
use crate::unpack::sink::{Item, Warnings};
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use undercroft_xfs::format::{FileType, Timestamp};

const SETUID_SETGID: u16 = 0o6000;

/// For a regular file or directory that is open.
pub(super) fn apply_to_file(
    file: &File,
    item: &Item<'_>,
    warnings: &mut Warnings,
) -> Result<(), UnpackError> {
    let (uid, gid) = owner(item);
    let owned = owner_kept(rustix::fs::fchown(file, Some(uid), Some(gid)), item, warnings)?;
    for (name, value) in item.attributes {
        let set = rustix::fs::fsetxattr(file, name.as_slice(), value, XattrFlags::empty());
        attribute_kept(set, item, warnings)?;
    }
    rustix::fs::fchmod(file, mode(item, owned))
        .map_err(|error| failed("set the mode of", item, error))?;
    rustix::fs::futimens(file, &times(item))
        .map_err(|error| failed("set the times of", item, error))
}

/// For a name in `directory` that is not opened: a symbolic link or a special file.
pub(super) fn apply_to_name(
    directory: BorrowedFd<'_>,
    item: &Item<'_>,
    warnings: &mut Warnings,
) -> Result<(), UnpackError> {
    let ((uid, gid), name) = (owner(item), item.name());
    let no_follow = AtFlags::SYMLINK_NOFOLLOW;
    let set = rustix::fs::chownat(directory, name, Some(uid), Some(gid), no_follow);
    let owned = owner_kept(set, item, warnings)?;
    if !item.attributes.is_empty() {
        // The only way to attributes of a name in an open directory.
        let path = [format!("/proc/self/fd/{}/", directory.as_raw_fd()).as_bytes(), name].concat();
        for (attribute, value) in item.attributes {
            let flags = XattrFlags::empty();
            let set = rustix::fs::lsetxattr(path.as_slice(), attribute.as_slice(), value, flags);
            attribute_kept(set, item, warnings)?;
        }
    }
    if item.kind != FileType::Symlink {
        // The name was just made, in a directory that only this process's user may write.
        rustix::fs::chmodat(directory, name, mode(item, owned), AtFlags::empty())
            .map_err(|error| failed("set the mode of", item, error))?;
    }
    rustix::fs::utimensat(directory, name, &times(item), no_follow)
        .map_err(|error| failed("set the times of", item, error))
}

fn owner(item: &Item<'_>) -> (Uid, Gid) {
    (Uid::from_raw(item.core.uid), Gid::from_raw(item.core.gid))
}

/// Whether the owner was set; not having the right is counted.
fn owner_kept(
    set: Result<(), Errno>,
    item: &Item<'_>,
    warnings: &mut Warnings,
) -> Result<bool, UnpackError> {
    match set {
        Ok(()) => Ok(true),
        // Identifiers that a user namespace does not map are invalid.
        Err(Errno::PERM | Errno::INVAL) => {
            warnings.owners += 1;
            Ok(false)
        }
        Err(error) => Err(failed("set the owner of", item, error)),
    }
}

/// Counts an attribute that the process may not set or the file system cannot hold.
fn attribute_kept(
    set: Result<(), Errno>,
    item: &Item<'_>,
    warnings: &mut Warnings,
) -> Result<(), UnpackError> {
    match set {
        Ok(()) => Ok(()),
        Err(
            Errno::PERM
            | Errno::ACCESS
            | Errno::OPNOTSUPP
            | Errno::INVAL
            | Errno::NOSPC
            | Errno::TOOBIG
            | Errno::RANGE
            | Errno::NOENT,
        ) => {
            warnings.attributes += 1;
            Ok(())
        }
        Err(error) => Err(failed("set an attribute of", item, error)),
    }
}

/// Permission bits; a file that belongs to another user than it should is not setuid.
fn mode(item: &Item<'_>, owned: bool) -> Mode {
    let bits = item.core.mode & 0o7777;
    let special = item.kind != FileType::Directory;
    let bits = if owned || !special { bits } else { bits & !SETUID_SETGID };
    Mode::from_raw_mode(bits.into())
}

fn times(item: &Item<'_>) -> Timestamps {
    // A damaged inode may decode to more nanoseconds than a second has.
    let time = |time: Timestamp| Timespec {
        tv_sec: time.seconds,
        tv_nsec: time.nanoseconds.min(999_999_999).into(),
    };
    let core = &item.core;
    Timestamps { last_access: time(core.atime), last_modification: time(core.mtime) }
}
