//! The directory that has the contents of files. Symbolic links in it are not followed.

use crate::files::{ContentsFile, Handle};
use crate::{EntryPath, SourceError};
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory with contents.
pub(super) struct Contents {
    path: PathBuf,
    root: Arc<Handle>,
    /// The directory that was asked for last: the next file is most often there too.
    last: Arc<Handle>,
}

impl Contents {
    pub(super) fn open(path: &Path) -> Result<Self, SourceError> {
        let root = Handle::root(path)
            .map_err(|error| SourceError::Open { path: path.into(), source: error.into() })?;
        let root = Arc::new(root);
        Ok(Self { path: path.into(), last: Arc::clone(&root), root })
    }

    /// The path of something in it.
    pub(super) fn shown(&self, path: &[u8]) -> PathBuf {
        if path.is_empty() { self.path.clone() } else { self.path.join(OsStr::from_bytes(path)) }
    }

    /// The file at a path. It may be none; its directory is one.
    pub(super) fn file(&mut self, path: &EntryPath) -> Result<ContentsFile, Errno> {
        let shown = self.shown(path.as_bytes());
        let Some((parent, name)) = path.split_last() else {
            return Ok(ContentsFile {
                directory: self.root.clone(),
                name: b".".as_slice().into(),
                shown,
            });
        };
        let directory = self.directory(parent)?;
        Ok(ContentsFile { directory, name: name.into(), shown })
    }

    fn directory(&mut self, path: &[u8]) -> Result<Arc<Handle>, Errno> {
        let known = self.last.path.as_bytes();
        let rest = match path.strip_prefix(known) {
            Some([]) => return Ok(Arc::clone(&self.last)),
            Some([b'/', rest @ ..]) if !known.is_empty() => rest,
            _ => {
                self.last = Arc::clone(&self.root);
                path
            }
        };
        for name in rest.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let path = Arc::new(self.last.path.join(name));
            self.last = Arc::new(self.last.enter(name, path)?);
        }
        Ok(Arc::clone(&self.last))
    }

    /// What is at a path, if anything is, and not below a symbolic link.
    pub(super) fn stat(&mut self, path: &EntryPath) -> Result<Option<Stat>, Errno> {
        let found = self.file(path).and_then(|ContentsFile { directory, name, .. }| {
            statat(&*directory, &*name, AtFlags::SYMLINK_NOFOLLOW)
        });
        match found {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Files of this machine that are named by whole paths.
#[derive(Default)]
pub(super) struct HostFiles {
    last: Option<(PathBuf, Arc<Handle>)>,
}

impl HostFiles {
    /// The file that a path leads to, over symbolic links too.
    pub(super) fn file(&mut self, path: &Path) -> Result<ContentsFile, Errno> {
        let whole = path
            .canonicalize()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOENT))?;
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(Errno::ISDIR);
        };
        let directory = match &self.last {
            Some((last, handle)) if last == parent => Arc::clone(handle),
            _ => Arc::new(Handle::root(parent)?),
        };
        self.last = Some((parent.to_owned(), Arc::clone(&directory)));
        Ok(ContentsFile { directory, name: name.as_bytes().into(), shown: path.to_owned() })
    }
}

/// Whether it is a regular file.
pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
