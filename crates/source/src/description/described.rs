//! An entry that a description tells of, and what it says about its contents.

use super::digest::{Digest, Hasher};
use super::error::{DescriptionError, DescriptionProblem};
use crate::directory::Handle;
use crate::{Entry, Metadata, Timestamp, Xattr};
use rustix::io::Errno;
use std::path::PathBuf;
use std::sync::Arc;

/// Attributes as far as a description tells them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(super) mode: Option<u16>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) mtime: Option<Timestamp>,
}

impl Told {
    pub(super) fn is_complete(&self) -> bool {
        self.mode.is_some() && self.uid.is_some() && self.gid.is_some() && self.mtime.is_some()
    }

    /// The attributes: what is not told is that of the file with the contents, or else owner 0:0 and
    /// time 0. There is no mode to be guessed.
    pub(super) fn over(&self, file: Option<&Metadata>) -> Option<Metadata> {
        Some(Metadata {
            mode: self.mode.or(file.map(|file| file.mode))?,
            uid: self.uid.or(file.map(|file| file.uid)).unwrap_or_default(),
            gid: self.gid.or(file.map(|file| file.gid)).unwrap_or_default(),
            mtime: self.mtime.or(file.map(|file| file.mtime)).unwrap_or_default(),
        })
    }
}

/// What a description says about contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) size: Option<u64>,
    pub(super) digests: Vec<Digest>,
}

/// Where contents, and attributes that are not told, are.
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
    pub(super) shown: PathBuf,
}

/// An entry that waits for its file.
pub(crate) struct Described {
    /// Without what is the file's: attributes that are not told, the size of a regular file.
    pub(crate) entry: Entry,
    pub(crate) place: Place,
    pub(super) told: Told,
    pub(super) expected: Expected,
    /// The extended attributes are those of the file with the contents.
    pub(super) takes_xattrs: bool,
    pub(super) description: Arc<str>,
    pub(super) line: u64,
}

impl Described {
    /// The directory of the file with the contents.
    pub(crate) fn directory(&self) -> Option<&Arc<Handle>> {
        match &self.place {
            Place::File(file) => Some(&file.directory),
            Place::Nowhere | Place::Inline(_) => None,
        }
    }

    pub(super) fn fault(&self, problem: DescriptionProblem) -> Box<DescriptionError> {
        problem.at(&self.description, self.line)
    }

    fn path(&self) -> Vec<u8> {
        self.entry.path.as_bytes().to_vec()
    }

    /// Gives the entry its attributes, those of `file` where they are not told.
    pub(crate) fn complete(
        &mut self,
        file: Option<&Metadata>,
    ) -> Result<(), Box<DescriptionError>> {
        let metadata = self.told.over(file);
        self.entry.metadata = metadata.ok_or_else(|| self.fault(no_mode(self.path())))?;
        Ok(())
    }

    /// Gives the entry the attributes of the file with its contents, if it has them from there. Access
    /// control lists are not: the mode is told.
    pub(crate) fn take_xattrs(&mut self, mut xattrs: Vec<Xattr>) {
        if self.takes_xattrs {
            xattrs.retain(|xattr| !xattr.name.starts_with(b"system."));
            self.entry.xattrs = xattrs;
        }
    }

    /// Compares the size of the contents.
    pub(crate) fn check_size(&self, found: u64) -> Result<(), Box<DescriptionError>> {
        match self.expected.size {
            Some(expected) if expected != found => {
                let path = self.path();
                Err(self.fault(DescriptionProblem::Size { path, expected, found }))
            }
            _ => Ok(()),
        }
    }

    /// Why the file that has the contents could not be used.
    pub(crate) fn no_contents(&self, error: Errno) -> Box<DescriptionError> {
        let (path, file) = match &self.place {
            Place::File(file) => (self.path(), file.shown.clone()),
            _ => (self.path(), PathBuf::new()),
        };
        self.fault(contents_problem(path, file, error))
    }

    /// The digests that the contents should have, as they are computed.
    pub(crate) fn check(&self) -> Check {
        let hasher = |digest: &Digest| Hasher::new(digest.algorithm);
        Check(self.expected.digests.iter().map(hasher).collect())
    }

    /// Compares the digests of contents of `size` bytes.
    pub(crate) fn finish(&self, check: Check, size: u64) -> Result<(), Box<DescriptionError>> {
        for (hasher, expected) in check.0.into_iter().zip(&self.expected.digests) {
            let found = hasher.finish(size);
            if found != *expected {
                return Err(self.fault(DescriptionProblem::Digest {
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

pub(super) fn no_mode(path: Vec<u8>) -> DescriptionProblem {
    let what = "has no mode; write mode=, or a line such as \"/set mode=0644\" before it";
    DescriptionProblem::Unsaid { path, what }
}

/// Why contents cannot be had from a file.
pub(super) fn contents_problem(path: Vec<u8>, file: PathBuf, error: Errno) -> DescriptionProblem {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ISDIR => {
            DescriptionProblem::ContentsKind { path, file, wanted: "regular file" }
        }
        error => DescriptionProblem::Contents { path, file, source: error.into() },
    }
}
