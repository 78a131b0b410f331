//! Mounts of this command, as the system lists them.

use rustix::fs::getxattr;
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use undercroft_fuse::{STATUS_ATTRIBUTE, Status};

/// Longest status.
const STATUS_BYTES: usize = 64 << 10;

/// The type that the system has for them.
const TYPE: &str = "fuse.undercroft";

/// The status of the mount at a directory.
pub(crate) fn status_of(directory: &Path) -> Result<Status, Errno> {
    let mut value = vec![0; STATUS_BYTES];
    let len = getxattr(directory, STATUS_ATTRIBUTE, &mut value[..])?;
    Status::from_json(&value[..len]).map_err(|_| Errno::PROTO)
}

/// Where the image of this name is mounted.
pub(crate) fn place_of(image: &Path) -> Option<PathBuf> {
    all().into_iter().find(|mount| mount.image == image).map(|mount| mount.directory)
}

/// Whether a mount of this command is at a directory, answering or not.
pub(crate) fn is_at(directory: &Path) -> bool {
    all().iter().any(|mount| mount.directory == directory)
}

struct Listed {
    image: PathBuf,
    directory: PathBuf,
}

fn all() -> Vec<Listed> {
    let list = std::fs::read("/proc/self/mounts").unwrap_or_default();
    let of_line = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let (image, directory, kind) = (words.next()?, words.next()?, words.next()?);
        let listed = || Listed { image: unescaped(image), directory: unescaped(directory) };
        (kind == TYPE.as_bytes()).then(listed)
    };
    list.split(|byte| *byte == b'\n').filter_map(of_line).collect()
}

/// A path of the list, in which blanks and the like are three octal digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.first_chunk::<3>().filter(|_| byte == b'\\');
        let code =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_list_are_read() {
        assert_eq!(unescaped(b"/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped(b"/plain\\9"), Path::new("/plain\\9"));
    }
}
