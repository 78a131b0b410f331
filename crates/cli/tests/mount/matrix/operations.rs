//! The operations that change a file.

use super::{GROUP, OWNER, SIZE};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, IFlags, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    XattrFlags, fallocate, ioctl_setflags, removexattr, setxattr, utimensat,
};
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

/// A file to copy from.
pub(super) const SOURCE: &str = "source";

/// What may differ from the kernel's XFS.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Nothing.
    Nothing,
    /// Times, until the kernel has forgotten the file: it counts those of files whose data it holds
    /// back, and no reply or word of the server says others.
    LateTimes,
    /// The time of change: the kernel sets it when an attribute was removed, and it is not told that
    /// there was none.
    TimeOfChange,
}

/// A change of a file.
pub(super) struct Operation {
    pub(super) name: &'static str,
    run: fn(&Path) -> Result<()>,
    pub(super) difference: Difference,
}

impl Operation {
    /// Does it; returns the number of the error.
    pub(super) fn run(&self, path: &Path) -> std::result::Result<(), i32> {
        (self.run)(path).map_err(|error| error.raw_os_error().unwrap_or(0))
    }
}

const fn operation(name: &'static str, run: fn(&Path) -> Result<()>) -> Operation {
    Operation { name, run, difference: Difference::Nothing }
}

/// A list for the owner, user 1234, the group, the mask and others.
const LIST: [u8; 44] = {
    let entries: [(u8, u8, u32); 5] =
        [(1, 7, !0), (2, 6, 1234), (4, 7, !0), (0x10, 7, !0), (0x20, 7, !0)];
    let mut list = [0; 44];
    list[0] = 2;
    let mut index = 0;
    while index < entries.len() {
        let (at, (tag, rights, user)) = (4 + index * 8, entries[index]);
        (list[at], list[at + 2]) = (tag, rights);
        let user = user.to_le_bytes();
        (list[at + 4], list[at + 5], list[at + 6], list[at + 7]) =
            (user[0], user[1], user[2], user[3]);
        index += 1;
    }
    list
};

pub(super) static OPERATIONS: &[Operation] = &[
    operation("write", |path| open(path, OFlags::empty())?.write_all_at(&[2; 100], 0)),
    operation("write that is synced", |path| {
        let file = open(path, OFlags::empty())?;
        file.write_all_at(&[2; 100], 0)?;
        file.sync_all()
    }),
    operation("synchronous write", |path| open(path, OFlags::SYNC)?.write_all_at(&[2; 9], 0)),
    operation("append", |path| open(path, OFlags::APPEND)?.write_all(&[3; 100])),
    operation("direct write", |path| {
        let memory = vec![4; 8192];
        let start = memory.as_ptr().align_offset(4096);
        open(path, OFlags::DIRECT)?.write_all_at(&memory[start..start + 4096], 0)
    }),
    operation("store in a mapping", |path| {
        run("xfs_io", &["-c", "mmap -rw 0 4096", "-c", "mwrite 0 10", "-c", "msync -s"], path)
    }),
    operation("truncate to less", |path| truncate(path, SIZE / 2)),
    operation("truncate to more", |path| truncate(path, SIZE * 2)),
    operation("truncate to the same", |path| truncate(path, SIZE)),
    operation("ftruncate to less", |path| open(path, OFlags::empty())?.set_len(5000)),
    operation("ftruncate to more", |path| open(path, OFlags::empty())?.set_len(50_000)),
    operation("ftruncate to the same", |path| open(path, OFlags::empty())?.set_len(SIZE as u64)),
    operation("open with O_TRUNC", |path| open(path, OFlags::TRUNC).map(|_| ())),
    operation("fallocate", |path| allocate(path, FallocateFlags::empty())),
    operation("fallocate with the size kept", |path| allocate(path, FallocateFlags::KEEP_SIZE)),
    operation("punched hole", |path| {
        allocate(path, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE)
    }),
    operation("zeroed range", |path| allocate(path, FallocateFlags::ZERO_RANGE)),
    operation("zeroed range with the size kept", |path| {
        allocate(path, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE)
    }),
    operation("copy_file_range", |path| {
        let source = File::open(path.with_file_name(SOURCE))?;
        let target = open(path, OFlags::empty())?;
        rustix::fs::copy_file_range(source, None, target, None, 4096)?;
        Ok(())
    }),
    operation("sendfile", |path| {
        let target = open(path, OFlags::empty())?;
        rustix::fs::sendfile(target, File::open(path.with_file_name(SOURCE))?, None, 4096)?;
        Ok(())
    }),
    operation("short attribute", |path| set_attribute(path, "user.short", b"value")),
    operation("long attribute", |path| set_attribute(path, "user.long", &[b'x'; 5000])),
    operation("attribute set and removed", |path| {
        set_attribute(path, "user.long", &[b'x'; 5000])?;
        Ok(removexattr(path, "user.long")?)
    }),
    operation("access list", |path| set_attribute(path, "system.posix_acl_access", &LIST)),
    Operation {
        difference: Difference::TimeOfChange,
        ..operation("access list that is not there removed", |path| {
            Ok(removexattr(path, "system.posix_acl_access")?)
        })
    },
    operation("chmod", |path| fs::set_permissions(path, fs::Permissions::from_mode(0o640))),
    operation("chmod to setuid and setgid", |path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o6755))
    }),
    operation("chown to the same", |path| chown(path, Some(OWNER), Some(GROUP))),
    operation("chown to another group", |path| chown(path, None, Some(OWNER))),
    operation("chown of nothing", |path| chown(path, None, None)),
    operation("times of now", |path| times(path, at(0, UTIME_NOW), at(0, UTIME_NOW))),
    operation("times", |path| times(path, at(5, 6), at(7, 8))),
    operation("time of modification", |path| times(path, at(0, UTIME_OMIT), at(7, 8))),
    operation("time of access", |path| times(path, at(7, 8), at(0, UTIME_OMIT))),
    operation("link", |path| fs::hard_link(path, path.with_extension("link"))),
    operation("rename", |path| {
        fs::rename(path, path.with_extension("moved"))?;
        fs::rename(path.with_extension("moved"), path)
    }),
    operation("unlink of another name", |path| {
        fs::hard_link(path, path.with_extension("link"))?;
        fs::remove_file(path.with_extension("link"))
    }),
    Operation {
        difference: Difference::LateTimes,
        ..operation("chattr", |path| Ok(ioctl_setflags(File::open(path)?, IFlags::NODUMP)?))
    },
    // The volume has the nearest that it can hold.
    Operation {
        difference: Difference::LateTimes,
        ..operation("times out of range", |path| times(path, at(1 << 40, 0), at(1 << 40, 0)))
    },
];

fn open(path: &Path, flags: OFlags) -> Result<File> {
    OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn allocate(path: &Path, flags: FallocateFlags) -> Result<()> {
    Ok(fallocate(open(path, OFlags::empty())?, flags, 4096, 16_384)?)
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    Ok(setxattr(path, name, value, XattrFlags::empty())?)
}

fn at(seconds: i64, nanoseconds: i64) -> Timespec {
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds }
}

fn times(path: &Path, accessed: Timespec, modified: Timespec) -> Result<()> {
    let times = Timestamps { last_access: accessed, last_modification: modified };
    Ok(utimensat(CWD, path, &times, AtFlags::empty())?)
}

fn truncate(path: &Path, size: usize) -> Result<()> {
    run("perl", &["-e", "truncate($ARGV[1], $ARGV[0]) or die", &size.to_string()], path)
}

fn run(program: &str, arguments: &[&str], path: &Path) -> Result<()> {
    let ended = Command::new(program).args(arguments).arg(path).output()?;
    if ended.status.success() { Ok(()) } else { Err(std::io::Error::from_raw_os_error(1)) }
}
