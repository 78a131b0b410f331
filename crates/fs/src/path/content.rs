//! Files as a whole, by path.

use super::bytes;
use super::place::is_directory;
use super::resolve::Follow;
use crate::error::At;
use crate::names::{Existing, NewFile};
use crate::{File, FileSystem, Metadata, PathError};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use undercroft_xfs::{Error, ErrorKind, ops};

/// Permissions of a file that a verb makes on its way.
const NEW_MODE: u16 = 0o644;

impl FileSystem {
    /// Opens the file at a path.
    ///
    /// # Errors
    /// It does not exist; a part of the path is no directory, or leads through too many symbolic
    /// links; a damaged structure; the device failed.
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, PathError> {
        self.open_by(bytes(&path), Follow::ALL)
    }

    /// As [`open_file`](Self::open_file), the symbolic link itself if the path ends in one.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn open_no_follow(&self, path: impl AsRef<Path>) -> Result<File, PathError> {
        self.open_by(bytes(&path), Follow::BUT_LAST)
    }

    fn open_by(&self, path: &[u8], follow: Follow<'_>) -> Result<File, PathError> {
        let (inode, located) = self.locate_existing(path, follow)?;
        self.open_inode(&inode).map_err(|error| located.failed(path, error))
    }

    /// Opens the regular file at a path; creates it, empty, if there is none.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file), with the directory it is in; no space; the volume is
    /// read-only.
    pub fn create_file(&self, path: impl AsRef<Path>, new: &NewFile) -> Result<File, PathError> {
        self.create_by(bytes(&path), new)
    }

    fn create_by(&self, path: &[u8], new: &NewFile) -> Result<File, PathError> {
        let located = self.locate(path, Follow::ALL)?;
        if located.is_directory && !located.inode.as_deref().is_some_and(is_directory) {
            let (path_text, kind) = (ops::path_text(path), ErrorKind::IsDirectory);
            let error = Error::WrongKind { path: path_text, what: "names a directory", kind };
            return Err(PathError::of(path, error));
        }
        let opened = match (&located.inode, &located.place) {
            (Some(inode), _) => self.open_inode(inode),
            (None, Some((directory, name))) => self.open_inode(directory).and_then(|directory| {
                Ok(self.nodes().create(directory.number(), name, new, Existing::Open)?.1)
            }),
            (None, None) => Err(Error::NotFound(ops::path_text(path))),
        };
        opened.map_err(|error| located.failed(path, error))
    }

    /// All bytes of a file.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file); it is no regular file.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, PathError> {
        let path = bytes(&path);
        let file = self.open_by(path, Follow::ALL)?;
        read_all(&file).at(path)
    }

    /// Makes `content` that of a file, which is created if there is none (mode 644, of root).
    /// It is not durable before a ticket says so.
    ///
    /// # Errors
    /// As [`create_file`](Self::create_file); it is no regular file.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        content: impl AsRef<[u8]>,
    ) -> Result<(), PathError> {
        let path = bytes(&path);
        let file = self.create_by(path, &NewFile::new(NEW_MODE))?;
        file.set_len(0).and_then(|()| file.write_at(0, content.as_ref())).at(path)
    }

    /// Copies content and permissions of the file `from` to `to`, which is created if there is
    /// none; returns the bytes. Blocks are shared where the volume can; holes stay holes.
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`write`](Self::write); both are the same file.
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, PathError> {
        let (from, to) = (bytes(&from), bytes(&to));
        let source = self.open_by(from, Follow::ALL)?;
        // Fails here for other kinds than regular files, before anything is made or cut.
        source.seek_data(0).at(from)?;
        let known = source.metadata();
        let target = self.create_by(to, &NewFile::new(known.mode))?;
        if target.number() == source.number() {
            let what = format!("{} is the file that is to be copied", ops::path_text(to));
            return Err(PathError::of(to, Error::Invalid(what)));
        }
        let work = || {
            target.set_len(0)?;
            let copied = target.copy_range(0, &source, 0, u64::MAX)?;
            let mode = crate::Change { mode: Some(known.mode), ..crate::Change::default() };
            target.set_attributes(&mode)?;
            Ok(copied)
        };
        work().at(to)
    }

    /// The metadata of the file at a path.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, PathError> {
        Ok(self.metadata_of(&*self.find(bytes(&path), Follow::ALL)?))
    }

    /// As [`metadata`](Self::metadata), of the symbolic link itself if the path ends in one.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, PathError> {
        Ok(self.metadata_of(&*self.find(bytes(&path), Follow::BUT_LAST)?))
    }

    /// Whether there is a file at a path.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file), but for what does not exist.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, PathError> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.error(), Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The target of the symbolic link at a path.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file); it is no symbolic link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<PathBuf, PathError> {
        let path = bytes(&path);
        let inode = self.find(path, Follow::BUT_LAST)?;
        let target = ops::read_link(self.volume(), &inode.read()).at(path)?;
        self.note_read(&inode);
        Ok(OsString::from_vec(target).into())
    }

    /// The path of the file that a path leads to, from the root, without symbolic links and dots.
    ///
    /// # Errors
    /// As [`open_file`](Self::open_file).
    pub fn canonicalize(&self, path: impl AsRef<Path>) -> Result<PathBuf, PathError> {
        let (_, located) = self.locate_existing(bytes(&path), Follow::ALL)?;
        Ok(OsString::from_vec(located.canonical()).into())
    }
}

fn read_all(file: &File) -> Result<Vec<u8>, Error> {
    // A size in an inode costs nothing to write: memory grows with the bytes really read.
    const STEP: u64 = 4 << 20;
    let mut bytes = Vec::new();
    loop {
        let at = bytes.len();
        let left = file.size().saturating_sub(at as u64).clamp(1, STEP);
        bytes.resize(at + left as usize, 0);
        let read = file.read_at(at as u64, &mut bytes[at..])?;
        bytes.truncate(at + read);
        if read == 0 {
            return Ok(bytes);
        }
    }
}
