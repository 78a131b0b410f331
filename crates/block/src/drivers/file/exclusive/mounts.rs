//! The mounts of the kernel, as this process sees them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the kernel lists the mounts of this process's namespace.
const LIST: &str = "/proc/self/mountinfo";

/// A disk that is mounted.
pub(super) struct Mount {
    /// Number of the disk.
    pub(super) disk: u64,
    pub(super) at: PathBuf,
}

/// All mounts, none where /proc is not mounted; file systems without a disk have numbers that no
/// disk has.
pub(super) fn read() -> io::Result<Vec<Mount>> {
    let list = open()?.map_or(Ok(Vec::new()), |mut file| {
        let mut list = Vec::new();
        file.read_to_end(&mut list).map(|_| list)
    })?;
    Ok(list.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Opens the list of the kernel; `None` where /proc is not mounted.
pub(super) fn open() -> io::Result<Option<File>> {
    match File::open(LIST) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fields of a line: id, parent, major:minor, root, mount point, ...
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let disk = number(std::str::from_utf8(fields.next()?).ok()?)?;
    let at = OsString::from_vec(unescape(fields.nth(1)?)).into();
    Some(Mount { disk, at })
}

/// A number of a disk, written `major:minor`.
fn number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim_end().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Blanks, tabs, ends of lines and backslashes of a path are listed as `\` and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if *first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

/// Where a disk is mounted, or one of its partitions, or the disk that it is a partition of.
pub(super) fn of_disk(number: u64, mounts: &[Mount]) -> Option<PathBuf> {
    let place = sysfs(number);
    let mut numbers = vec![number];
    numbers.extend(partitions(&place));
    if place.join("partition").exists() {
        numbers.extend(number_of(&place.join("..")));
    }
    mounts.iter().find(|mount| numbers.contains(&mount.disk)).map(|mount| mount.at.clone())
}

/// Where the kernel tells about a disk.
pub(super) fn sysfs(number: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// Number of the disk that the kernel tells about at `place`.
pub(super) fn number_of(place: &Path) -> Option<u64> {
    number(&fs::read_to_string(place.join("dev")).ok()?)
}

/// Numbers of the partitions of a disk.
fn partitions(place: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let partitions = entries.flatten().map(|entry| entry.path());
    partitions
        .filter(|path| path.join("partition").exists())
        .filter_map(|path| number_of(&path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_disk_and_mount_point() {
        let line = br"36 35 7:3 / /mnt/two\040words rw,noatime master:1 - xfs /dev/loop3 rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.disk, rustix::fs::makedev(7, 3));
        assert_eq!(mount.at, Path::new("/mnt/two words"));
        assert!(parse(b"").is_none());
        assert!(parse(b"36 35 nonsense / /mnt").is_none());
    }

    #[test]
    fn only_escaped_bytes_are_unescaped() {
        assert_eq!(unescape(br"a\134\04\999b"), br"a\\04\999b");
    }
}
