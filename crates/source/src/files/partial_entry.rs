//! An entry of which a part is said, in a description, and the rest comes from a file.

use super::contents_problem::ContentsProblem;
use super::handle::Handle;
use crate::digest::{Digest, Hasher};
use crate::{Entry, Metadata, SourceError, Timestamp, Xattr};
use rustix::io::Errno;
use std::path::PathBuf;
use std::sync::Arc;

/// Attributes as far as they are said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PartialMetadata {
    pub(crate) mode: Option<u16>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) mtime: Option<Timestamp>,
}

impl PartialMetadata {
    pub(crate) fn is_complete(&self) -> bool {
        self.mode.is_some() && self.uid.is_some() && self.gid.is_some() && self.mtime.is_some()
    }

    /// The attributes: what is not said is that of the file with the contents, or else owner 0:0 and
    /// time 0. There is no mode to be guessed.
    pub(crate) fn over(&self, file: Option<&Metadata>) -> Option<Metadata> {
        Some(Metadata {
            mode: self.mode.or(file.map(|file| file.mode))?,
            uid: self.uid.or(file.map(|file| file.uid)).unwrap_or_default(),
            gid: self.gid.or(file.map(|file| file.gid)).unwrap_or_default(),
            mtime: self.mtime.or(file.map(|file| file.mtime)).unwrap_or_default(),
        })
    }
}

/// What contents are to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) size: Option<u64>,
    pub(crate) digests: Vec<Digest>,
}

/// Where contents, and attributes that are not said, are.
pub(crate) enum Place {
    /// Nowhere: there is no file, or it is empty.
    Nowhere,
    /// In the description.
    Inline(Arc<[u8]>),
    /// In a file.
    File(ContentsFile),
}

/// A file by its directory.
pub(crate) struct ContentsFile {
    pub(crate) directory: Arc<Handle>,
    pub(crate) name: Box<[u8]>,
    /// All of its path.
    pub(crate) shown: PathBuf,
}

/// Makes an error of a problem of the entry on a line.
pub(crate) type Blame = dyn Fn(u64, ContentsProblem) -> SourceError + Send + Sync;

/// An entry that waits for its file.
pub(crate) struct PartialEntry {
    /// Without what is the file's: attributes that are not said, the size of a regular file.
    pub(crate) entry: Entry,
    pub(crate) place: Place,
    pub(crate) metadata: PartialMetadata,
    pub(crate) expected: Expected,
    /// The extended attributes are those of the file with the contents.
    pub(crate) takes_xattrs: bool,
    pub(crate) line: u64,
    pub(crate) blame: Arc<Blame>,
}

impl PartialEntry {
    /// The directory of the file with the contents.
    pub(crate) fn directory(&self) -> Option<&Arc<Handle>> {
        match &self.place {
            Place::File(file) => Some(&file.directory),
            Place::Nowhere | Place::Inline(_) => None,
        }
    }

    fn fault(&self, problem: ContentsProblem) -> SourceError {
        (self.blame)(self.line, problem)
    }

    fn path(&self) -> Vec<u8> {
        self.entry.path.as_bytes().to_vec()
    }

    /// Gives the entry its attributes, those of `file` where they are not said.
    pub(crate) fn complete(&mut self, file: Option<&Metadata>) -> Result<(), SourceError> {
        let metadata = self.metadata.over(file);
        self.entry.metadata =
            metadata.ok_or_else(|| self.fault(ContentsProblem::NoMode { path: self.path() }))?;
        Ok(())
    }

    /// Gives the entry the attributes of the file with its contents, if it has them from there. Access
    /// control lists are not: the mode is said.
    pub(crate) fn take_xattrs(&mut self, mut xattrs: Vec<Xattr>) {
        if self.takes_xattrs {
            xattrs.retain(|xattr| !xattr.name.starts_with(b"system."));
            self.entry.xattrs = xattrs;
        }
    }

    /// Compares the size of the contents.
    pub(crate) fn check_size(&self, found: u64) -> Result<(), SourceError> {
        match self.expected.size {
            Some(expected) if expected != found => {
                let path = self.path();
                Err(self.fault(ContentsProblem::Size { path, expected, found }))
            }
            _ => Ok(()),
        }
    }

    /// Why the file that has the contents could not be used.
    pub(crate) fn no_contents(&self, error: Errno) -> SourceError {
        let (path, file) = match &self.place {
            Place::File(file) => (self.path(), file.shown.clone()),
            _ => (self.path(), PathBuf::new()),
        };
        self.fault(ContentsProblem::of(path, file, error))
    }

    /// The digests that the contents should have, as they are computed.
    pub(crate) fn check(&self) -> Check {
        let hasher = |digest: &Digest| Hasher::new(digest.algorithm);
        Check(self.expected.digests.iter().map(hasher).collect())
    }

    /// Compares the digests of contents of `size` bytes.
    pub(crate) fn finish(&self, check: Check, size: u64) -> Result<(), SourceError> {
        for (hasher, expected) in check.0.into_iter().zip(&self.expected.digests) {
            let found = hasher.finish(size);
            if found != *expected {
                return Err(self.fault(ContentsProblem::Digest {
                    path: self.path(),
                    algorithm: expected.algorithm.name(),
                    expected: expected.digits(),
                    found: found.digits(),
                }));
            }
        }
        Ok(())
    }
}

/// Digests that are being computed.
pub(crate) struct Check(Vec<Hasher>);

impl Check {
    /// Whether there is nothing to be compared.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes data, in ascending order.
    pub(crate) fn update(&mut self, offset: u64, bytes: &[u8]) {
        for hasher in &mut self.0 {
            hasher.update(offset, bytes);
        }
    }
}
