//! The mounts of a mount name space, as the kernel lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A mount of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its number, which no other mount of the system has now.
    pub mount: u64,
    /// The number of the mount that it stands on.
    pub parent: u64,
    /// The number of the device of its file system.
    pub device: u64,
    /// The directory.
    pub directory: PathBuf,
    /// The kind of its file system, such as `fuse.undercroft`.
    pub kind: String,
    /// What was mounted.
    pub source: PathBuf,
    /// Its options, as the kernel has them.
    pub options: String,
    /// Nothing can be changed in its file system, by whatever mount of it.
    pub read_only: bool,
}

/// The mounts that this process sees.
///
/// # Errors
/// /proc is not mounted.
pub fn listed() -> io::Result<Vec<Listed>> {
    list(Path::new("/proc/self/mountinfo"))
}

/// The mounts that a process sees.
pub(crate) fn listed_by(process: u32) -> io::Result<Vec<Listed>> {
    list(Path::new(&format!("/proc/{process}/mountinfo")))
}

fn list(path: &Path) -> io::Result<Vec<Listed>> {
    Ok(parse_all(&fs::read(path)?).collect())
}

/// The mounts of a list.
pub(crate) fn parse_all(list: &[u8]) -> impl Iterator<Item = Listed> {
    list.split(|byte| *byte == b'\n').filter_map(parse)
}

/// Fields of a line: mount, parent, major:minor, root, directory, options, more of them up to `-`, kind,
/// source, options of the file system.
fn parse(line: &[u8]) -> Option<Listed> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (mount, parent) = (text()?.parse().ok()?, text()?.parse().ok()?);
    let (major, minor) = text()?.split_once(':')?;
    let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    let directory = unescaped(fields.nth(1)?);
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8_lossy(behind.next()?).into_owned();
    let source = unescaped(behind.next()?);
    let read_only = behind.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
    Some(Listed { mount, parent, device, directory, kind, source, options, read_only })
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
    fn a_line_of_the_list_is_read() {
        let line = br"36 35 0:41 / /mnt/two\040words rw,nodev master:1 - fuse.undercroft /a\134b ro,user_id=0";
        let listed = parse(line).unwrap();
        assert_eq!((listed.mount, listed.parent), (36, 35));
        assert_eq!(listed.device, rustix::fs::makedev(0, 41));
        assert_eq!(listed.directory, Path::new("/mnt/two words"));
        assert_eq!((&*listed.kind, &*listed.source), ("fuse.undercroft", Path::new("/a\\b")));
        assert_eq!((&*listed.options, listed.read_only), ("rw,nodev", true));
        assert_eq!(parse(b"36 35 nonsense / /mnt"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn paths_of_the_list_are_read() {
        assert_eq!(unescaped(br"/a\040b\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped(br"/plain\9"), Path::new("/plain\\9"));
    }
}
