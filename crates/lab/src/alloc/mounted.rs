//! A mounted directory as the place of an experiment: with the kernel's allocator.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use super::jobs::Job;
use super::site::Site;
use crate::error::LabError;

/// Bytes of one write call, as in the source.
pub(super) const WRITE_BYTES: usize = 1 << 20;

/// The directories of an experiment in a mounted directory.
pub(super) struct OnMount {
    directories: Vec<PathBuf>,
    /// Write and sync data instead of allocating space for it.
    data: bool,
    buffer: Vec<u8>,
}

impl OnMount {
    /// Creates the directories.
    pub(super) fn new(mount: &Path, directories: usize, data: bool) -> Result<Self, LabError> {
        let paths = (0..directories).map(|number| mount.join(format!("directory-{number}")));
        let directories: Vec<PathBuf> = paths.collect();
        for path in &directories {
            fs::create_dir(path).map_err(|source| failed(path, source))?;
        }
        Ok(Self { directories, data, buffer: vec![0x5a; WRITE_BYTES] })
    }
}

fn failed(path: &Path, source: io::Error) -> LabError {
    LabError::File { path: path.to_owned(), source }
}

/// An open file and its path, for messages.
pub(super) struct OpenFile {
    file: File,
    path: PathBuf,
}

impl Site for OnMount {
    type File = OpenFile;

    fn create(&self, job: &Job) -> Result<OpenFile, LabError> {
        let path = self.directories[job.directory].join(format!("file-{}", job.number));
        let file = File::create_new(&path).map_err(|source| failed(&path, source))?;
        Ok(OpenFile { file, path })
    }

    fn write(&self, open: &mut OpenFile, job: &Job) -> Result<(), LabError> {
        let mut left = if self.data { job.bytes } else { 0 };
        while left > 0 {
            let len = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let written = open.file.write_all(&self.buffer[..len]);
            written.map_err(|source| failed(&open.path, source))?;
            left -= len as u64;
        }
        Ok(())
    }

    fn sync(&self, open: &mut OpenFile, job: &Job) -> Result<(), LabError> {
        let done = if self.data {
            open.file.sync_all()
        } else {
            fallocate(&open.file, FallocateFlags::empty(), 0, job.bytes).map_err(Into::into)
        };
        done.map_err(|source| failed(&open.path, source))
    }

    fn close(&self, open: OpenFile) -> Result<(), LabError> {
        drop(open.file);
        Ok(())
    }
}
