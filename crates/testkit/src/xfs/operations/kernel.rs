//! The operations on a mounted volume.

use super::operation::{Move, Operation, Set, pattern};
use rustix::fs::{
    AtFlags, CWD, FileType as Type, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use undercroft_xfs::format::FileType;

/// Does it below `root`; says why if the kernel refuses.
pub fn apply(root: &Path, operation: &Operation) -> Result<(), Errno> {
    attempt(root, operation).inspect_err(|error| {
        let fault = matches!(*error, Errno::NOSPC | Errno::IO | Errno::UCLEAN | Errno::PERM);
        assert!(!fault || is_user(operation), "{operation:?}: {error}");
    })
}

/// Whether the kernel refuses an attribute of a user on inodes other than files and directories.
fn is_user(operation: &Operation) -> bool {
    match operation {
        Operation::SetAttribute { name, .. } | Operation::RemoveAttribute { name, .. } => {
            name.starts_with("user.")
        }
        // A second name for a directory.
        Operation::Link { .. } => true,
        _ => false,
    }
}

fn attempt(root: &Path, operation: &Operation) -> Result<(), Errno> {
    let at = |path: &[u8]| -> PathBuf { root.join(OsStr::from_bytes(path)) };
    let bits = |mode: u16| Mode::from_raw_mode(mode.into());
    match operation {
        Operation::Make { path, kind: FileType::Symlink, target, .. } => {
            rustix::fs::symlink(OsStr::from_bytes(target), at(path))
        }
        Operation::Make { path, kind: FileType::Directory, mode, .. } => {
            rustix::fs::mkdir(at(path), bits(*mode))
        }
        Operation::Make { path, kind, mode, device, .. } => {
            let kind = match kind {
                FileType::Fifo => Type::Fifo,
                _ => Type::CharacterDevice,
            };
            let device = rustix::fs::makedev(device.0, device.1);
            rustix::fs::mknodat(CWD, at(path), kind, bits(*mode), device)
        }
        Operation::File { path, mode, ranges, seed } => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            let file = std::fs::File::from(rustix::fs::open(at(path), flags, bits(*mode))?);
            for range in ranges {
                let bytes: Vec<u8> = range.clone().map(|at| pattern(*seed, at)).collect();
                file.write_all_at(&bytes, range.start).unwrap();
            }
            Ok(())
        }
        Operation::Link { from, to } => {
            rustix::fs::linkat(CWD, at(from), CWD, at(to), AtFlags::empty())
        }
        Operation::Unlink { path } => rustix::fs::unlink(at(path)),
        Operation::Rmdir { path } => rustix::fs::rmdir(at(path)),
        Operation::Rename { from, to, mode } => {
            let flags = match mode {
                Move::Replace => RenameFlags::empty(),
                Move::NoReplace => RenameFlags::NOREPLACE,
                Move::Exchange => RenameFlags::EXCHANGE,
            };
            rustix::fs::renameat_with(CWD, at(from), CWD, at(to), flags)
        }
        Operation::Mode { path, mode } => rustix::fs::chmod(at(path), bits(*mode)),
        Operation::Owner { path, uid, gid } => {
            let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
            let nofollow = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(CWD, at(path), Some(uid), Some(gid), nofollow)
        }
        Operation::Times { path, access, modification } => {
            let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
            let times =
                Timestamps { last_access: time(*access), last_modification: time(*modification) };
            rustix::fs::utimensat(CWD, at(path), &times, AtFlags::SYMLINK_NOFOLLOW)
        }
        Operation::SetAttribute { path, name, value, mode } => {
            let flags = match mode {
                Set::Either => XattrFlags::empty(),
                Set::Create => XattrFlags::CREATE,
                Set::Replace => XattrFlags::REPLACE,
            };
            rustix::fs::lsetxattr(at(path), name.as_str(), value, flags)
        }
        Operation::RemoveAttribute { path, name } => {
            rustix::fs::lremovexattr(at(path), name.as_str())
        }
    }
}
