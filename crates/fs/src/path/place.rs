//! Where something is made, moved or taken away: a name in a directory.

use super::bytes;
use super::resolve::Follow;
use crate::{File, FileSystem, Metadata, PathError};
use std::path::Path;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{Error, ErrorKind, ops};

/// The last name of a path and the directory it is in, for verbs by number. There may be a file of
/// that name.
#[derive(Debug)]
pub struct Place {
    path: Vec<u8>,
    /// Open, so that its number stays its own.
    directory: File,
    name: Vec<u8>,
    pub(super) inode: Option<Arc<Inode>>,
    /// Slashes follow: only a directory can be meant.
    is_directory: bool,
}

impl FileSystem {
    /// The place of the last name of a path, whether slashes follow it or not. A symbolic link of
    /// that name is not followed.
    ///
    /// # Errors
    /// The directory it is in does not exist, or is none; the path ends in no name, as `/` and `..`
    /// do; a damaged structure; the device failed.
    pub fn place(&self, path: impl AsRef<Path>) -> Result<Place, PathError> {
        self.place_by(bytes(&path), Follow::NAME, ErrorKind::InUse)
    }

    /// As [`place`](Self::place), but a symbolic link of that name is followed: where a file is
    /// created that is opened by the path.
    ///
    /// # Errors
    /// As [`place`](Self::place); too many symbolic links.
    pub fn place_followed(&self, path: impl AsRef<Path>) -> Result<Place, PathError> {
        self.place_by(bytes(&path), Follow::ALL, ErrorKind::IsDirectory)
    }

    /// A path that ends in no name is an error of the kind `nameless`.
    pub(super) fn place_by(
        &self,
        path: &[u8],
        follow: Follow<'_>,
        nameless: ErrorKind,
    ) -> Result<Place, PathError> {
        let located = self.locate(path, follow)?;
        let failed = |error| PathError::of(path, error);
        let Some((directory, name)) = located.place else {
            let path = ops::path_text(path);
            return Err(failed(match nameless {
                ErrorKind::Exists => Error::Exists(path),
                kind => Error::WrongKind { path, what: "it ends in no name", kind },
            }));
        };
        Ok(Place {
            path: path.to_vec(),
            directory: self.open_inode(&directory).map_err(failed)?,
            name,
            inode: located.inode,
            is_directory: located.is_directory,
        })
    }

    /// A place whose name is free, for a file of this kind.
    pub(super) fn free_place(&self, path: &[u8], kind: FileType) -> Result<Place, PathError> {
        let place = self.place_by(path, Follow::NAME, ErrorKind::Exists)?;
        let cannot_be = place.is_directory && kind != FileType::Directory;
        match place.inode {
            Some(_) => Err(place.failed(Error::Exists(String::new()))),
            None if cannot_be => Err(place.failed(Error::NotFound(String::new()))),
            None => Ok(place),
        }
    }
}

impl Place {
    /// The directory, open.
    #[must_use]
    pub fn directory(&self) -> &File {
        &self.directory
    }

    /// The name in it.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The file that had the name when it was looked for.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata> {
        self.inode.as_deref().map(|inode| self.directory.file_system().metadata_of(inode))
    }

    /// Refuses a kind of file that the name cannot stand for: with slashes behind it, all but a
    /// directory.
    ///
    /// # Errors
    /// It is no directory, and slashes follow the name.
    pub fn expect_kind(&self, kind: FileType) -> Result<(), PathError> {
        if !self.is_directory || kind == FileType::Directory {
            return Ok(());
        }
        let (path, kind) = (String::new(), ErrorKind::NotDirectory);
        Err(self.failed(Error::WrongKind { path, what: "not a directory", kind }))
    }

    /// An error of a verb by number, as one at this path.
    #[must_use]
    pub fn failed(&self, error: Error) -> PathError {
        PathError::of(&self.path, error)
    }
}

pub(super) fn is_directory(inode: &Inode) -> bool {
    inode.read().file_type() == FileType::Directory
}
