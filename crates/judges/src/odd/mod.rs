//! A tree with every odd thing that a tree can hold, one directory per kind of oddity.
//!
//! The file system that the tree is made on, or the rights of the process, may not allow all of it:
//! missing parts are reported by name. On a [`crate::Scratch`] volume as root nothing is.

mod attributes;
mod data;
mod directories;
mod inodes;
mod names;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, statat, utimensat};
use rustix::io::Errno;

use crate::Error;

/// Makes the tree in the existing directory `root`, and returns what had to be left out, sorted.
///
/// # Errors
/// Something failed for another reason than a limit of the file system or of the process's rights.
pub fn odd_tree(root: &Path) -> Result<Vec<String>, Error> {
    let mut maker = Maker { root: root.to_owned(), left_out: Vec::new() };
    names::make(&mut maker)?;
    inodes::make(&mut maker)?;
    data::make(&mut maker)?;
    attributes::make(&mut maker)?;
    directories::make(&mut maker)?;
    maker.left_out.sort();
    Ok(maker.left_out)
}

/// The tree in the making.
struct Maker {
    root: PathBuf,
    left_out: Vec<String>,
}

impl Maker {
    /// Makes a directory of the tree.
    fn directory(&self, path: &str) -> Result<PathBuf, Error> {
        let path = self.root.join(path);
        fs::create_dir_all(&path).map_err(Error::io("cannot create", &path))?;
        Ok(path)
    }

    /// Makes an empty file.
    fn file(path: &Path) -> Result<(), Error> {
        fs::write(path, "").map_err(Error::io("cannot create", path))
    }

    /// Records an oddity that a limit forbids here; other failures stay failures.
    fn attempt(&mut self, what: &str, path: &Path, done: Result<(), Errno>) -> Result<(), Error> {
        match done {
            Ok(()) => Ok(()),
            Err(
                Errno::PERM
                | Errno::ACCESS
                | Errno::NOTSUP
                | Errno::NOSPC
                | Errno::TOOBIG
                | Errno::RANGE
                | Errno::INVAL,
            ) => {
                self.left_out.push(what.to_owned());
                Ok(())
            }
            Err(error) => Err(Error::io("cannot change", path)(error)),
        }
    }

    /// Sets a modification time, and records when the file system clamps it.
    fn mtime(&mut self, path: &Path, seconds: i64, nanoseconds: i64) -> Result<(), Error> {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(Error::io("cannot set the times of", path))?;
        let stat =
            statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(Error::io("cannot stat", path))?;
        let nanoseconds_kept = i64::try_from(stat.st_mtime_nsec).unwrap_or(-1);
        if (stat.st_mtime, nanoseconds_kept) != (seconds, nanoseconds) {
            self.left_out.push(format!("mtime of {seconds}.{nanoseconds:09}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Options, compare};
    use crate::{Scratch, kernel};

    #[test]
    fn an_ordinary_file_system_takes_most_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let left_out = odd_tree(scratch.path()).unwrap();
        assert!(left_out.len() < 100, "{left_out:#?}");
        let same = compare(scratch.path(), scratch.path(), &Options::default()).unwrap();
        same.assert_same();
        assert!(same.entries > 4_000);
    }

    #[test]
    fn a_scratch_volume_takes_all_of_it() {
        if !kernel::available_or_report() {
            return;
        }
        let volume = Scratch::new(512 << 20).unwrap();
        let left_out = odd_tree(volume.path()).unwrap();
        assert!(left_out.is_empty(), "{left_out:#?}");
        let (_directory, image) = volume.into_image().unwrap();
        crate::Xfsprogs::newest().unwrap().repair_check(&image).unwrap();
    }
}
