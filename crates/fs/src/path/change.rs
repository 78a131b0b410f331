//! Names by path.

use super::AsPath;
use super::resolve::{Follow, Located};
use crate::error::At;
use crate::names::{NewFile, Owner, RenameFlags};
use crate::{File, FileSystem, PathError};
use undercroft_xfs::{Error, ops};

/// Permissions of a directory that a verb makes.
const NEW_MODE: u16 = 0o755;

impl FileSystem {
    /// Creates a directory (mode 755, of root).
    ///
    /// # Errors
    /// It exists; the directory it would be in does not; no space; a damaged structure; the device
    /// failed; the volume is read-only.
    pub fn create_dir(&self, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        let work = || {
            let located = self.locate(path, Follow::BUT_LAST)?;
            if located.inode.is_some() {
                return Err(Error::Exists(ops::path_text(path)));
            }
            let (directory, name) = self.place(located, path)?;
            self.mkdir(directory.number(), &name, &NewFile::new(NEW_MODE)).map(drop)
        };
        work().at(path)
    }

    /// Creates a directory and all those on the way that are missing. It may exist.
    ///
    /// # Errors
    /// As [`create_dir`](Self::create_dir); a part of the path is no directory.
    pub fn create_dir_all(&self, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        let new = NewFile::new(NEW_MODE);
        let follow = Follow { make: Some(&new), ..Follow::ALL };
        let work = || {
            let inode = self.find(path, follow)?;
            // The existing file must be a directory.
            self.child(&inode, b".").map(drop)
        };
        work().at(path)
    }

    /// Takes away the name of a file that is no directory.
    ///
    /// # Errors
    /// It does not exist, or is a directory; a damaged structure; the device failed; the volume is
    /// read-only.
    pub fn remove_file(&self, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        let work = || {
            let (directory, name) = self.place(self.locate(path, Follow::BUT_LAST)?, path)?;
            self.unlink(directory.number(), &name).map(drop)
        };
        work().at(path)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// It does not exist, is no directory, or is not empty; a damaged structure; the device failed;
    /// the volume is read-only.
    pub fn remove_dir(&self, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        let work = || {
            let (directory, name) = self.place(self.locate(path, Follow::BUT_LAST)?, path)?;
            self.rmdir(directory.number(), &name).map(drop)
        };
        work().at(path)
    }

    /// Moves a name. A file at the new one is replaced: a file by a file, an empty directory by a
    /// directory. Links at the end of a path are not followed. Errors bear the old path.
    ///
    /// # Errors
    /// As [`FileSystem::rename`].
    pub fn rename_path(
        &self,
        from: impl AsPath,
        to: impl AsPath,
        flags: RenameFlags,
    ) -> Result<(), PathError> {
        let (from, to) = (from.path_bytes(), to.path_bytes());
        let place = |path| {
            let located = self.locate(path, Follow::BUT_LAST);
            located.and_then(|located| self.place(located, path)).at(path)
        };
        let ((old, old_name), (new, new_name)) = (place(from)?, place(to)?);
        let renamed = self.rename((old.number(), &old_name), (new.number(), &new_name), flags);
        renamed.map_err(|error| {
            // The new name exists already.
            let about_new = matches!(error, Error::Exists(_) | Error::NotEmpty(_));
            PathError::new(if about_new { to } else { from }, error)
        })
    }

    /// Gives the file at `from`, which is no directory, another name, `to`. A link at the end of
    /// `from` gets the name itself.
    ///
    /// # Errors
    /// As [`FileSystem::link`].
    pub fn hard_link(&self, from: impl AsPath, to: impl AsPath) -> Result<(), PathError> {
        let (from, to) = (from.path_bytes(), to.path_bytes());
        let file = self.find(from, Follow::BUT_LAST).and_then(|inode| self.open_inode(&inode));
        let file = file.at(from)?;
        let work = || {
            let (directory, name) = self.place(self.locate(to, Follow::BUT_LAST)?, to)?;
            self.link_file(&file, directory.number(), &name).map(drop)
        };
        work().at(to)
    }

    /// Creates a symbolic link at `path` (of root).
    ///
    /// # Errors
    /// As [`FileSystem::symlink`].
    pub fn symlink_path(&self, target: impl AsPath, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        let work = || {
            let (directory, name) = self.place(self.locate(path, Follow::BUT_LAST)?, path)?;
            let owner = Owner::default();
            self.symlink(directory.number(), &name, target.path_bytes(), owner).map(drop)
        };
        work().at(path)
    }

    /// The directory of a name, open, so that its number stays its own; and the name.
    pub(super) fn place(&self, located: Located, path: &[u8]) -> Result<(File, Vec<u8>), Error> {
        let Some((directory, name)) = located.place else {
            let what = format!("{}: it ends in no name", ops::path_text(path));
            return Err(Error::Invalid(what));
        };
        Ok((self.open_inode(&directory)?, name))
    }
}
