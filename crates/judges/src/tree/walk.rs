//! The walk over both trees at once.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::attributes;
use super::data;
use super::{Comparison, Difference, Field, Holes, Options};
use crate::Error;
use crate::sparse::{self, Map};

/// One of the two trees.
struct Side {
    root: PathBuf,
    attributes: attributes::Reader,
    /// The first path of each file with several names, by device and inode.
    groups: HashMap<(u64, u64), PathBuf>,
}

/// A directory that is open in both trees.
struct Pair {
    left: OwnedFd,
    right: OwnedFd,
}

/// The state of one comparison.
pub(super) struct Walk<'a> {
    left: Side,
    right: Side,
    options: &'a Options,
    data: data::Reader,
    result: Comparison,
}

impl Side {
    fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            attributes: attributes::Reader::new(),
            groups: HashMap::new(),
        }
    }

    /// The first path at which the file of `stat`, now met at `path`, was met.
    fn group(&mut self, stat: &Stat, path: &Path) -> PathBuf {
        self.groups.entry((stat.st_dev, stat.st_ino)).or_insert_with(|| path.to_owned()).clone()
    }

    /// Names the place of a failure in this tree.
    fn failed(&self, action: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error {
        move |error| Error::io(action, &self.root.join(path))(error)
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(left: &Path, right: &Path, options: &'a Options) -> Self {
        Self {
            left: Side::new(left),
            right: Side::new(right),
            options,
            data: data::Reader::new(),
            result: Comparison::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<Comparison, Error> {
        let cwd = rustix::fs::CWD;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = Path::new("");
        let left = openat(cwd, &self.left.root, flags, Mode::empty())
            .map_err(self.left.failed("cannot open", here))?;
        let right = openat(cwd, &self.right.root, flags, Mode::empty())
            .map_err(self.right.failed("cannot open", here))?;
        let pair = Pair { left, right };
        if self.options.root {
            self.entry(&pair, OsStr::new("."), here)?;
        }
        self.directory(&pair, here)?;
        self.result.bytes = self.data.bytes;
        Ok(self.result)
    }

    /// Compares the contents of two directories, both at `path`.
    fn directory(&mut self, pair: &Pair, path: &Path) -> Result<(), Error> {
        let left = names(&pair.left).map_err(self.left.failed("cannot list", path))?;
        let right = names(&pair.right).map_err(self.right.failed("cannot list", path))?;
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.cmp(right),
            };
            match order {
                Ordering::Less => {
                    let name = left.next().unwrap_or_default();
                    self.note(&path.join(name), Field::Presence, "there", "missing");
                }
                Ordering::Greater => {
                    let name = right.next().unwrap_or_default();
                    self.note(&path.join(name), Field::Presence, "missing", "there");
                }
                Ordering::Equal => {
                    right.next();
                    let name = left.next().unwrap_or_default();
                    self.both(pair, &name, &path.join(&name))?;
                }
            }
        }
    }

    /// Compares an entry that both directories have, and the tree below it.
    fn both(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<(), Error> {
        if !self.entry(pair, name, path)? {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = Pair {
            left: openat(&pair.left, name, flags, Mode::empty())
                .map_err(self.left.failed("cannot open", path))?,
            right: openat(&pair.right, name, flags, Mode::empty())
                .map_err(self.right.failed("cannot open", path))?,
        };
        self.directory(&inner, path)
    }

    /// Compares two entries themselves; true when both are directories.
    fn entry(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<bool, Error> {
        self.result.entries += 1;
        let left = statat(&pair.left, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.left.failed("cannot stat", path))?;
        let right = statat(&pair.right, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.right.failed("cannot stat", path))?;
        let kind = FileType::from_raw_mode(left.st_mode);
        let other = FileType::from_raw_mode(right.st_mode);
        if kind != other {
            self.differ(path, Field::Kind, &kind, &other);
            return Ok(false);
        }
        self.metadata(path, kind, &left, &right);
        self.attributes(pair, name, path)?;
        match kind {
            FileType::Directory => return Ok(true),
            FileType::Symlink => self.targets(pair, name, path)?,
            FileType::CharacterDevice | FileType::BlockDevice => {
                self.differ(path, Field::Device, &left.st_rdev, &right.st_rdev);
            }
            _ => {}
        }
        let mut first = true;
        if left.st_nlink > 1 || right.st_nlink > 1 {
            let left = self.left.group(&left, path);
            let right = self.right.group(&right, path);
            // The contents of a group are compared at its first name.
            first = left == path;
            self.differ(path, Field::LinkGroup, &left, &right);
        }
        if kind == FileType::RegularFile && first {
            self.regular(pair, name, path, &left, &right)?;
        }
        Ok(false)
    }

    fn metadata(&mut self, path: &Path, kind: FileType, left: &Stat, right: &Stat) {
        let (mode, other) = (left.st_mode & 0o7777, right.st_mode & 0o7777);
        if mode != other {
            self.note(path, Field::Mode, format!("{mode:04o}"), format!("{other:04o}"));
        }
        self.differ(path, Field::Uid, &left.st_uid, &right.st_uid);
        self.differ(path, Field::Gid, &left.st_gid, &right.st_gid);
        let mtime = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec);
        self.differ(path, Field::Mtime, &mtime(left), &mtime(right));
        if self.options.atime {
            let atime = |stat: &Stat| (stat.st_atime, stat.st_atime_nsec);
            self.differ(path, Field::Atime, &atime(left), &atime(right));
        }
        if self.options.ctime {
            let ctime = |stat: &Stat| (stat.st_ctime, stat.st_ctime_nsec);
            self.differ(path, Field::Ctime, &ctime(left), &ctime(right));
        }
        if kind != FileType::Directory {
            self.differ(path, Field::Links, &left.st_nlink, &right.st_nlink);
        }
    }

    fn attributes(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<(), Error> {
        let left = self.left.attributes.read(&through(&pair.left, name));
        let left = left.map_err(self.left.failed("cannot read attributes of", path))?;
        let right = self.right.attributes.read(&through(&pair.right, name));
        let mut right = right.map_err(self.right.failed("cannot read attributes of", path))?;
        for (name, value) in left {
            let other = right.remove(&name);
            if other.as_deref() != Some(&value) {
                let field = Field::Attribute(name.escape_ascii().to_string());
                self.note(path, field, printable(Some(&value)), printable(other.as_deref()));
            }
        }
        for (name, value) in right {
            let field = Field::Attribute(name.escape_ascii().to_string());
            self.note(path, field, printable(None), printable(Some(&value)));
        }
        Ok(())
    }

    fn targets(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<(), Error> {
        let left = readlinkat(&pair.left, name, Vec::new())
            .map_err(self.left.failed("cannot read link", path))?;
        let right = readlinkat(&pair.right, name, Vec::new())
            .map_err(self.right.failed("cannot read link", path))?;
        self.differ(path, Field::Target, &left, &right);
        Ok(())
    }

    /// Compares sizes, allocation and contents.
    fn regular(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        path: &Path,
        left: &Stat,
        right: &Stat,
    ) -> Result<(), Error> {
        self.differ(path, Field::Size, &left.st_size, &right.st_size);
        if self.options.holes == Holes::Blocks {
            self.differ(path, Field::Holes, &left.st_blocks, &right.st_blocks);
        }
        if left.st_size != right.st_size || left.st_size == 0 {
            return Ok(());
        }
        let size = u64::try_from(left.st_size).unwrap_or(0);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let left = openat(&pair.left, name, flags, Mode::empty())
            .map_err(self.left.failed("cannot open", path))?;
        let right = openat(&pair.right, name, flags, Mode::empty())
            .map_err(self.right.failed("cannot open", path))?;
        let full = |file: &OwnedFd| sparse::dense(file.as_fd(), size);
        let dense = full(&left).map_err(self.left.failed("cannot map", path))?
            && full(&right).map_err(self.right.failed("cannot map", path))?;
        let ranges = if dense {
            Map::from([(0, size)])
        } else {
            let left =
                sparse::map(left.as_fd(), size).map_err(self.left.failed("cannot map", path))?;
            let right =
                sparse::map(right.as_fd(), size).map_err(self.right.failed("cannot map", path))?;
            self.holes(path, &left, &right, size);
            sparse::union(&left, &right)
        };
        let found = self
            .data
            .difference(left.as_fd(), right.as_fd(), &ranges)
            .map_err(self.left.failed("cannot read, here or in the other tree,", path))?;
        if let Some(offset) = found {
            let place = format!("from byte {offset} of {size}");
            self.note(path, Field::Contents, &place, "other bytes");
        }
        Ok(())
    }

    /// Compares where two files of one size hold data.
    fn holes(&mut self, path: &Path, left: &[(u64, u64)], right: &[(u64, u64)], size: u64) {
        let Holes::Map { unit } = self.options.holes else { return };
        let left = sparse::round(left, unit, size);
        let right = sparse::round(right, unit, size);
        if left == right {
            return;
        }
        let at = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
        let show = |map: &Map| match map.get(at) {
            Some((start, end)) => format!("range {at} of {} is {start}..{end}", map.len()),
            None => format!("{at} ranges of data"),
        };
        self.note(path, Field::Holes, show(&left), show(&right));
    }

    /// Records a difference when the two values are not equal.
    fn differ<T: PartialEq + Debug>(&mut self, path: &Path, field: Field, left: &T, right: &T) {
        if left != right {
            self.note(path, field, format!("{left:?}"), format!("{right:?}"));
        }
    }

    fn note(
        &mut self,
        path: &Path,
        field: Field,
        left: impl Into<String>,
        right: impl Into<String>,
    ) {
        self.result.count += 1;
        if self.result.differences.len() < self.options.limit {
            let (left, right) = (left.into(), right.into());
            self.result.differences.push(Difference { path: path.to_owned(), field, left, right });
        }
    }
}

/// The names in a directory, sorted by their bytes.
fn names(directory: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    names.sort_unstable_by(|left, right| left.as_bytes().cmp(right.as_bytes()));
    Ok(names)
}

/// A path to `name` through an open directory, for system calls that take no descriptor; it stays
/// short however deep the tree is.
fn through(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
}

/// The start of an attribute's value, readable, with its length.
fn printable(value: Option<&[u8]>) -> String {
    const SHOWN: usize = 64;
    value.map_or_else(
        || "missing".to_owned(),
        |value| {
            let start = &value[..value.len().min(SHOWN)];
            format!("{} bytes \"{}\"", value.len(), start.escape_ascii())
        },
    )
}
