//! Names by path.

use super::bytes;
use super::resolve::Follow;
use crate::error::At;
use crate::names::{NewFile, Owner, RenameFlags};
use crate::{FileSystem, PathError};
use std::path::Path;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{Error, ErrorKind, ops};

/// Permissions of a directory that a verb makes.
const NEW_MODE: u16 = 0o755;

impl FileSystem {
    /// Creates a directory (mode 755, of root).
    ///
    /// # Errors
    /// It exists; the directory it would be in does not; no space; a damaged structure; the device
    /// failed; the volume is read-only.
    pub fn create_dir(&self, path: impl AsRef<Path>) -> Result<(), PathError> {
        let place = self.free_place(bytes(&path), FileType::Directory)?;
        let made =
            self.nodes().mkdir(place.directory().number(), place.name(), &NewFile::new(NEW_MODE));
        made.map(drop).map_err(|error| place.failed(error))
    }

    /// Creates a directory and all those on the way that are missing (mode 755, of root). It may
    /// exist.
    ///
    /// # Errors
    /// As [`create_dir`](Self::create_dir); a part of the path is no directory.
    pub fn create_dir_all(&self, path: impl AsRef<Path>) -> Result<(), PathError> {
        self.create_dir_all_as(path, &NewFile::new(NEW_MODE))
    }

    /// As [`create_dir_all`](Self::create_dir_all), for this owner; `new` has the mode of the last
    /// one.
    ///
    /// # Errors
    /// As there.
    pub fn create_dir_all_as(
        &self,
        path: impl AsRef<Path>,
        new: &NewFile,
    ) -> Result<(), PathError> {
        let path = bytes(&path);
        let (inode, located) = self.locate_existing(path, Follow::making(new))?;
        // The existing file must be a directory.
        self.child(&inode, b".").map(drop).map_err(|error| located.failed(path, error))
    }

    /// Takes away the name of a file that is no directory.
    ///
    /// # Errors
    /// It does not exist, or is a directory; a damaged structure; the device failed; the volume is
    /// read-only.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> Result<(), PathError> {
        let place = self.place_by(bytes(&path), Follow::NAME, ErrorKind::IsDirectory)?;
        place.expect_kind(kind(place.inode.as_deref()))?;
        let removed = self.nodes().unlink(place.directory().number(), place.name());
        removed.map(drop).map_err(|error| place.failed(error))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// It does not exist, is no directory, or is not empty; a damaged structure; the device failed;
    /// the volume is read-only.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> Result<(), PathError> {
        let place = self.place_by(bytes(&path), Follow::NAME, ErrorKind::Invalid)?;
        let removed = self.nodes().rmdir(place.directory().number(), place.name());
        removed.map(drop).map_err(|error| place.failed(error))
    }

    /// Moves a name. A file at the new one is replaced: a file by a file, an empty directory by a
    /// directory. Links at the end of a path are not followed.
    ///
    /// # Errors
    /// As [`Nodes::rename`](crate::Nodes::rename). What is in the way bears the new path, all else the old one.
    pub fn rename(
        &self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        flags: RenameFlags,
    ) -> Result<(), PathError> {
        let (old, new) = (self.place(from)?, self.place(to)?);
        let missing = || Error::NotFound(String::new());
        let moves = old.inode.as_deref().ok_or_else(|| old.failed(missing()))?;
        old.expect_kind(kind(Some(moves)))?;
        let comes = match &new.inode {
            Some(inode) if flags.exchange => inode,
            None if flags.exchange => return Err(new.failed(missing())),
            _ => moves,
        };
        new.expect_kind(kind(Some(comes)))?;
        let from = (old.directory().number(), old.name());
        let to = (new.directory().number(), new.name());
        self.nodes().rename(from, to, flags).map_err(|error| {
            let new_name = ops::path_text(new.name());
            let about_new = match &error {
                Error::Exists(_) | Error::NotEmpty(_) => true,
                Error::WrongKind { path, .. } => *path == new_name,
                _ => false,
            };
            if about_new { new.failed(error) } else { old.failed(error) }
        })
    }

    /// Gives the file at `from`, which is no directory, another name, `to`. A link at the end of
    /// `from` gets the name itself.
    ///
    /// # Errors
    /// As [`Nodes::link`](crate::Nodes::link).
    pub fn hard_link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), PathError> {
        let from = bytes(&from);
        let inode = self.find(from, Follow::BUT_LAST)?;
        let file = self.open_inode(&inode).at(from)?;
        let place = self.free_place(bytes(&to), FileType::Regular)?;
        let linked = self.nodes().link_file(&file, place.directory().number(), place.name());
        linked.map(drop).map_err(|error| match error {
            // A directory gets no other name.
            Error::WrongKind { .. } => PathError::of(from, error),
            error => place.failed(error),
        })
    }

    /// Creates a symbolic link at `path` (of root).
    ///
    /// # Errors
    /// As [`Nodes::symlink`](crate::Nodes::symlink).
    pub fn symlink(
        &self,
        target: impl AsRef<Path>,
        path: impl AsRef<Path>,
    ) -> Result<(), PathError> {
        let place = self.free_place(bytes(&path), FileType::Symlink)?;
        let (directory, target) = (place.directory().number(), bytes(&target));
        let made = self.nodes().symlink(directory, place.name(), target, Owner::default());
        made.map(drop).map_err(|error| place.failed(error))
    }
}

/// The kind of a file that is there. What is not there fails later, as that.
fn kind(inode: Option<&Inode>) -> FileType {
    inode.map_or(FileType::Directory, |inode| inode.read().file_type())
}
