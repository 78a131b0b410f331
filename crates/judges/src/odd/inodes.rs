//! Kinds of inodes, permission bits, owners, times, links.

use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Uid, chownat, makedev, mknodat};

use super::Maker;
use crate::Error;

pub(super) fn make(maker: &mut Maker) -> Result<(), Error> {
    modes(maker)?;
    owners(maker)?;
    times(maker)?;
    special_files(maker)?;
    symbolic_links(maker)?;
    hard_links(maker)
}

fn modes(maker: &mut Maker) -> Result<(), Error> {
    let directory = maker.directory("modes")?;
    for mode in [0o0000, 0o0400, 0o0644, 0o0777, 0o1644, 0o2755, 0o4755, 0o6755, 0o7777] {
        let file = directory.join(format!("file-{mode:04o}"));
        Maker::file(&file)?;
        set_mode(&file, mode)?;
        // A directory that its owner cannot enter would stop every later walk by its owner.
        let inner = maker.directory(&format!("modes/directory-{mode:04o}"))?;
        set_mode(&inner, mode | 0o700)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(Error::io("cannot set the mode of", path))
}

fn owners(maker: &mut Maker) -> Result<(), Error> {
    let directory = maker.directory("owners")?;
    for (uid, gid) in [
        (1, 2),
        (65_534, 65_534),
        (65_535, 65_536),
        (0x7fff_ffff, 0x8000_0000),
        (0xffff_fffe, 0xffff_fffe),
    ] {
        let path = directory.join(format!("{uid}-{gid}"));
        Maker::file(&path)?;
        let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let done = chownat(CWD, &path, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW);
        maker.attempt(&format!("owner {uid}:{gid}"), &path, done)?;
    }
    Ok(())
}

fn times(maker: &mut Maker) -> Result<(), Error> {
    /// The last second that an XFS time can hold, in the year 2486.
    const LAST: i64 = 16_299_260_424;
    let directory = maker.directory("times")?;
    for (seconds, nanoseconds) in [
        (-(1_i64 << 31), 0),
        (-1_000_000_000, 1),
        (-1, 999_999_999),
        (0, 0),
        (0, 999_999_999),
        (1_234_567_890, 123_456_789),
        ((1 << 31) - 1, 999_999_999),
        (1 << 31, 0),
        (1 << 33, 5),
        (LAST - 1, 999_999_999),
    ] {
        let path = directory.join(format!("{seconds}.{nanoseconds:09}"));
        Maker::file(&path)?;
        maker.mtime(&path, seconds, nanoseconds)?;
    }
    let inner = maker.directory("times/directory")?;
    maker.mtime(&inner, -7, 7)?;
    let link = directory.join("link");
    symlink("nowhere", &link).map_err(Error::io("cannot create", &link))?;
    maker.mtime(&link, 77, 777)
}

fn special_files(maker: &mut Maker) -> Result<(), Error> {
    let directory = maker.directory("special")?;
    let mode = Mode::from_raw_mode(0o640);
    for (name, kind) in [("fifo", FileType::Fifo), ("socket", FileType::Socket)] {
        let path = directory.join(name);
        let done = mknodat(CWD, &path, kind, mode, 0);
        maker.attempt(name, &path, done)?;
    }
    for (kind, name) in [(FileType::CharacterDevice, "char"), (FileType::BlockDevice, "block")] {
        // The largest that a kernel writes to XFS: majors below 512, minors of 18 bits.
        for (major, minor) in [(0, 0), (1, 3), (8, 255), (259, 256), (511, 0x3_ffff)] {
            let path = directory.join(format!("{name}-{major}-{minor}"));
            let done = mknodat(CWD, &path, kind, mode, makedev(major, minor));
            maker.attempt(&format!("{name} device {major}:{minor}"), &path, done)?;
        }
    }
    Ok(())
}

fn symbolic_links(maker: &mut Maker) -> Result<(), Error> {
    let directory = maker.directory("symlinks")?;
    // Around the inline sizes of 256 to 2048 byte inodes, a 1 KiB block, and the longest.
    for length in
        [1, 2, 59, 60, 61, 79, 80, 81, 155, 156, 157, 335, 336, 337, 847, 848, 967, 968, 969, 1023]
    {
        let path = directory.join(format!("to-{length}-bytes"));
        symlink("t".repeat(length), &path).map_err(Error::io("cannot create", &path))?;
    }
    let targets: [(&str, &[u8]); 4] = [
        ("absolute", b"/etc/hostname"),
        ("upwards", b"../../.."),
        ("bytes", b"not utf-8 \xff\n"),
        ("loop", b"loop"),
    ];
    for (name, target) in targets {
        let path = directory.join(name);
        symlink(std::ffi::OsStr::from_bytes(target), &path)
            .map_err(Error::io("cannot create", &path))?;
    }
    Ok(())
}

fn hard_links(maker: &mut Maker) -> Result<(), Error> {
    /// More names than one attribute block can hold as parent pointers.
    const MANY: u32 = 300;
    let directory = maker.directory("hardlinks")?;
    let other = maker.directory("hardlinks/elsewhere")?;
    let first = directory.join("first");
    std::fs::write(&first, "one file, many names").map_err(Error::io("cannot write", &first))?;
    for number in 0..MANY {
        let home = if number % 2 == 0 { &directory } else { &other };
        let path = home.join(format!("name-{number:03}"));
        std::fs::hard_link(&first, &path).map_err(Error::io("cannot link", &path))?;
    }
    let link = directory.join("symlink");
    symlink("first", &link).map_err(Error::io("cannot create", &link))?;
    let path = other.join("symlink");
    std::fs::hard_link(&link, &path).map_err(Error::io("cannot link", &path))?;
    let fifo = directory.join("fifo");
    let made = mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0);
    made.map_err(Error::io("cannot create", &fifo))?;
    let path = other.join("fifo");
    std::fs::hard_link(&fifo, &path).map_err(Error::io("cannot link", &path))
}
