//! The entries of one directory.

use super::bytes;
use super::resolve::Follow;
use crate::directory::Batch;
use crate::error::At;
use crate::{FileSystem, Metadata, PathError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_xfs::Error;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::units::InodeNumber;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    name: OsString,
    path: PathBuf,
    metadata: Metadata,
}

impl DirEntry {
    /// The name.
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        &self.name
    }

    /// The path of the directory, and the name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of the inode.
    #[must_use]
    pub fn number(&self) -> InodeNumber {
        self.metadata.number
    }

    /// Kind of file.
    #[must_use]
    pub fn kind(&self) -> FileType {
        self.metadata.kind
    }

    /// The metadata of the file, of a symbolic link itself, when it was listed.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// The entries of a directory without `.` and `..`, in its order. After an error there are no more.
#[derive(Debug)]
pub struct ReadDir {
    fs: FileSystem,
    path: PathBuf,
    listing: Listing,
}

impl FileSystem {
    /// The entries of the directory at a path.
    ///
    /// # Errors
    /// It does not exist, or is no directory; a damaged structure; the device failed.
    pub fn read_dir(&self, path: impl AsRef<Path>) -> Result<ReadDir, PathError> {
        let path = bytes(&path);
        let inode = self.find(path, Follow::ALL)?;
        self.child(&inode, b".").at(path)?;
        self.note_read(&inode);
        let path = OsStr::from_bytes(path).into();
        Ok(ReadDir { fs: self.clone(), path, listing: Listing::new(inode) })
    }
}

impl Iterator for ReadDir {
    type Item = Result<DirEntry, PathError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.listing.next(&self.fs).transpose()?;
        let path = self.path.as_os_str().as_bytes();
        Some(found.at(path).map(|Child { name, inode, .. }| {
            let metadata = self.fs.metadata_of(&inode);
            let name = OsString::from_vec(name);
            DirEntry { path: self.path.join(&name), name, metadata }
        }))
    }
}

/// A directory that is being listed, held by its inode.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) directory: Arc<Inode>,
    batch: Batch,
    index: usize,
    cookie: u64,
    is_over: bool,
}

/// A name in a directory and its file.
pub(super) struct Child {
    pub(super) name: Vec<u8>,
    pub(super) inode: Arc<Inode>,
}

impl Listing {
    pub(super) fn new(directory: Arc<Inode>) -> Self {
        Self { directory, batch: Batch::default(), index: 0, cookie: 0, is_over: false }
    }

    /// The next name. One that is removed meanwhile is left out; of a directory that is removed
    /// itself there are no more. After an error there are no more either.
    pub(super) fn next(&mut self, fs: &FileSystem) -> Result<Option<Child>, Error> {
        let found = self.next_child(fs);
        self.is_over |= !matches!(found, Ok(Some(_)));
        match found {
            Err(Error::Stale { .. }) => Ok(None),
            found => found,
        }
    }

    fn next_child(&mut self, fs: &FileSystem) -> Result<Option<Child>, Error> {
        while !self.is_over {
            let Some(entry) = self.batch.get(self.index) else {
                let batch = fs.batch(&self.directory, self.cookie)?;
                fs.prefetch(&batch);
                self.is_over = batch.is_empty();
                (self.cookie, self.index) = (batch.next(), 0);
                self.batch = batch;
                continue;
            };
            self.index += 1;
            if matches!(entry.name, b"." | b"..") {
                continue;
            }
            if let Some(inode) = fs.listed(&self.directory, &self.batch, &entry)? {
                return Ok(Some(Child { name: entry.name.to_vec(), inode }));
            }
        }
        Ok(None)
    }
}
