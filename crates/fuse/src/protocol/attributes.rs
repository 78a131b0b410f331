//! Metadata, numbers and times in the terms of the protocol.

use fuser::{Errno, FileAttr, FileType as Kind, Generation, INodeNo, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use undercroft_fs::{DeviceNumber, FileType, InodeNumber, Metadata, SetTime, Timestamp};

/// How long the kernel may keep what it is told: this mount is the only one that changes the volume,
/// and the kernel knows of every change. More than thirty years, which no kernel takes for something
/// else.
pub(super) const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// The metadata of a file. `number` is the one under which the kernel knows it.
pub(super) fn attributes(metadata: &Metadata, number: INodeNo) -> FileAttr {
    FileAttr {
        ino: number,
        size: metadata.size,
        blocks: metadata.blocks,
        atime: system_time(metadata.accessed),
        mtime: system_time(metadata.modified),
        ctime: system_time(metadata.changed),
        crtime: system_time(metadata.created),
        kind: kind(metadata.kind),
        perm: metadata.mode,
        nlink: metadata.nlink,
        uid: metadata.uid,
        gid: metadata.gid,
        rdev: encode_device(metadata.device),
        blksize: metadata.block_size,
        flags: 0,
    }
}

/// The answer for a name that does not exist, which the kernel then knows too.
pub(super) fn no_file() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: Kind::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

pub(super) fn generation(metadata: &Metadata) -> Generation {
    Generation(metadata.generation.into())
}

/// The number under which the kernel knows a file: that of its inode, and 1 for the root. No inode
/// has the number 1: the superblock is at its place.
pub(super) fn node(number: InodeNumber, root: InodeNumber) -> INodeNo {
    if number == root { INodeNo::ROOT } else { INodeNo(number.0) }
}

/// The inode that the kernel means.
pub(super) fn number(node: INodeNo, root: InodeNumber) -> InodeNumber {
    if node == INodeNo::ROOT { root } else { InodeNumber(node.0) }
}

pub(super) fn kind(kind: FileType) -> Kind {
    match kind {
        FileType::Fifo => Kind::NamedPipe,
        FileType::Character => Kind::CharDevice,
        FileType::Directory => Kind::Directory,
        FileType::Block => Kind::BlockDevice,
        FileType::Regular => Kind::RegularFile,
        FileType::Symlink => Kind::Symlink,
        FileType::Socket => Kind::Socket,
    }
}

pub(super) fn errno(number: i32) -> Errno {
    Errno::from_i32(number)
}

/// A number of a device as the kernel gives it: 12 bits of major, 20 of minor.
pub(super) const fn decode_device(device: u32) -> DeviceNumber {
    DeviceNumber { major: device >> 8 & 0xfff, minor: device & 0xff | device >> 12 & 0xf_ff00 }
}

const fn encode_device(device: DeviceNumber) -> u32 {
    device.minor & 0xff | (device.major & 0xfff) << 8 | (device.minor & 0xf_ff00) << 12
}

fn system_time(time: Timestamp) -> SystemTime {
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let second = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    let nanoseconds = Duration::from_nanos(time.nanoseconds.into());
    second.and_then(|second| second.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

/// A time that the library has decoded. Of times before 1970 it subtracts the nanoseconds instead of
/// adding them, which is undone here.
pub(super) fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let nanoseconds = before.subsec_nanos();
            Timestamp { seconds: -(before.as_secs() as i64), nanoseconds }
        }
    }
}

pub(super) fn set_time(time: TimeOrNow) -> SetTime {
    match time {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::To(timestamp(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices_are_read_as_they_are_written() {
        for (major, minor) in [(0, 0), (8, 1), (0xfff, 0xf_ffff), (1, 0x100)] {
            let device = DeviceNumber { major, minor };
            assert_eq!(decode_device(encode_device(device)), device);
        }
        assert_eq!(encode_device(DeviceNumber { major: 8, minor: 1 }), 0x801);
    }

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        let time = Timestamp { seconds: -2, nanoseconds: 750_000_000 };
        assert_eq!(system_time(time), UNIX_EPOCH - Duration::from_millis(1250));
        // As the library decodes it.
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_millis(2750)), time);
    }

    #[test]
    fn only_the_root_has_another_number() {
        let root = InodeNumber(128);
        assert_eq!(node(root, root), INodeNo(1));
        assert_eq!(number(INodeNo(1), root), root);
        assert_eq!(number(node(InodeNumber(131), root), root), InodeNumber(131));
    }
}
