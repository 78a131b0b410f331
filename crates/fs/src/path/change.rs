//! Names by path.

use super::AsPath;
use super::named::Named;
use super::resolve::Follow;
use crate::error::At;
use crate::names::{NewFile, Owner, RenameFlags};
use crate::{FileSystem, PathError};
use undercroft_xfs::{Error, ErrorKind, ops};

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
            let named = self.named(path, ErrorKind::Exists)?;
            if named.inode.is_some() {
                return Err(Error::Exists(ops::path_text(path)));
            }
            let new = NewFile::new(NEW_MODE);
            self.mkdir(named.directory.number(), &named.name, &new).map(drop)
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
        let follow = Follow::making(&new);
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
            let named = self.named(path, ErrorKind::IsDirectory)?;
            named.expect_may_be(named.inode.as_deref())?;
            self.unlink(named.directory.number(), &named.name).map(drop)
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
            let named = self.named(path, ErrorKind::Invalid)?;
            self.rmdir(named.directory.number(), &named.name).map(drop)
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
        let named = |path| self.named(path, ErrorKind::InUse).at(path);
        let (old, new) = (named(from)?, named(to)?);
        old.expect_may_be(old.inode.as_deref()).at(from)?;
        let comes = if flags.exchange { &new.inode } else { &old.inode };
        new.expect_may_be(comes.as_deref()).at(to)?;
        let (source, target) = (old.directory.number(), new.directory.number());
        let renamed = self.rename((source, &old.name), (target, &new.name), flags);
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
            let named = self.free_name(to)?;
            self.link_file(&file, named.directory.number(), &named.name).map(drop)
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
            let Named { directory, name, .. } = self.free_name(path)?;
            let owner = Owner::default();
            self.symlink(directory.number(), &name, target.path_bytes(), owner).map(drop)
        };
        work().at(path)
    }
}
