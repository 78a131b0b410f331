//! What goes on beside the operations that are verified: special files, links, attributes, reflinks,
//! and files that are gone and still open.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FallocateFlags, FileType, Mode, XattrFlags, copy_file_range, fallocate, mknodat, setxattr,
};
use rustix::io::Errno;

use crate::random::Random;

/// Entries that are there at a time, and files without a name that are held open.
const MOST_ENTRIES: u64 = 60;
const MOST_OPEN: usize = 8;

/// A directory in which anything goes.
pub(super) struct Noise {
    directory: PathBuf,
    random: Random,
    /// Files that have no name any more.
    open: Vec<File>,
}

impl Noise {
    pub(super) fn new(directory: PathBuf, seed: u64) -> Self {
        Self { directory, random: Random::new(!seed), open: Vec::new() }
    }

    /// One more change. Names that are there, or not there, are no error.
    ///
    /// # Errors
    /// The file system is gone, or fails.
    pub(super) fn step(&mut self) -> io::Result<()> {
        let number = self.random.below(MOST_ENTRIES);
        let path = self.directory.join(number.to_string());
        let harmless = [
            Errno::EXIST,
            Errno::NOENT,
            Errno::ISDIR,
            Errno::NOTDIR,
            Errno::NOTEMPTY,
            Errno::PERM,
            Errno::INVAL,
            Errno::NXIO,
            Errno::LOOP,
        ];
        match self.change(&path) {
            Err(error)
                if harmless.iter().any(|one| error.raw_os_error() == Some(one.raw_os_error())) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    fn change(&mut self, path: &Path) -> io::Result<()> {
        let other = self.directory.join(self.random.below(MOST_ENTRIES).to_string());
        let length = self.random.magnitude(17);
        match self.random.below(12) {
            0 => fs::create_dir_all(path.join("a/b/c")),
            1 => fs::remove_dir_all(path),
            2 => symlink("t/".repeat(1 + usize::try_from(length % 500).unwrap_or(0)), path),
            3 => Ok(mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?),
            4 => fs::hard_link(other, path),
            5 => fs::rename(other, path),
            6 => {
                let value = vec![7; usize::try_from(length % 3000).unwrap_or(0)];
                Ok(setxattr(path, "user.noise", &value, XattrFlags::empty())?)
            }
            7 => self.share(path, &other, length),
            8 => self.leave_open(path, length),
            9 => fs::remove_file(path),
            10 => {
                let file = regular(path)?;
                Ok(fallocate(file, FallocateFlags::empty(), length, 1 + length)?)
            }
            _ => regular(path)?.write_all_at(&vec![1; usize::try_from(length).unwrap_or(0)], 0),
        }
    }

    /// A file without a name: a crash leaves an orphan.
    fn leave_open(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let file = regular(path)?;
        fs::remove_file(path)?;
        file.write_all_at(&vec![3; usize::try_from(length).unwrap_or(0)], 0)?;
        self.open.push(file);
        if self.open.len() > MOST_OPEN {
            self.open.remove(0);
        }
        Ok(())
    }

    /// A piece of one file in another one.
    fn share(&self, path: &Path, other: &Path, length: u64) -> io::Result<()> {
        let (from, to) = (regular(path)?, regular(other)?);
        from.write_all_at(&vec![2; 8192], 0)?;
        from.sync_data()?;
        let length = usize::try_from(4096 + length % 4096).unwrap_or(4096);
        let (mut read, mut written) = (0, 0);
        copy_file_range(&from, Some(&mut read), &to, Some(&mut written), length)?;
        Ok(())
    }
}

/// A regular file of this name, made if there is nothing; a pipe would not be opened at once.
fn regular(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(Errno::INVAL.into()),
        _ => OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path),
    }
}
