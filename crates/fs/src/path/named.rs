//! The last name of a path, to be made or taken away: whether slashes follow it or not, a symbolic
//! link of that name is not followed.

use super::resolve::Follow;
use crate::{File, FileSystem};
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{Error, ErrorKind, ops};

/// The last name of a path; there may be a file of that name.
pub(super) struct Named {
    /// The directory it is in, open, so that its number stays its own.
    pub(super) directory: File,
    pub(super) name: Vec<u8>,
    pub(super) inode: Option<Arc<Inode>>,
    /// Slashes follow: only a directory can be meant.
    is_directory: bool,
}

impl FileSystem {
    /// The last name of a path. One that ends in none (`/`, `.`, `..`) is an error of the kind
    /// `nameless`.
    pub(super) fn named(&self, path: &[u8], nameless: ErrorKind) -> Result<Named, Error> {
        let located = self.locate(path, Follow::NAME)?;
        let Some((directory, name)) = located.place else {
            let path = ops::path_text(path);
            return Err(match nameless {
                ErrorKind::Exists => Error::Exists(path),
                kind => Error::WrongKind { path, what: "it ends in no name", kind },
            });
        };
        Ok(Named {
            directory: self.open_inode(&directory)?,
            name,
            inode: located.inode,
            is_directory: located.is_directory,
        })
    }

    /// A name that is free, for something that is no directory.
    pub(super) fn free_name(&self, path: &[u8]) -> Result<Named, Error> {
        let named = self.named(path, ErrorKind::Exists)?;
        match named.inode {
            Some(_) => Err(Error::Exists(ops::path_text(path))),
            None if named.is_directory => Err(Error::NotFound(ops::path_text(path))),
            None => Ok(named),
        }
    }
}

impl Named {
    /// Fails if slashes follow the name and `inode`, which has it or gets it, is there and no
    /// directory.
    pub(super) fn expect_may_be(&self, inode: Option<&Inode>) -> Result<(), Error> {
        if !self.is_directory || inode.is_none_or(is_directory) {
            return Ok(());
        }
        let (path, kind) = (ops::path_text(&self.name), ErrorKind::NotDirectory);
        Err(Error::WrongKind { path, what: "not a directory", kind })
    }
}

pub(super) fn is_directory(inode: &Inode) -> bool {
    inode.read().file_type() == FileType::Directory
}
