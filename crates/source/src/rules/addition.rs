//! Entries that rules add to a tree.

use super::error::{RuleError, RuleProblem};
use crate::chunk::{Chunk, Data};
use crate::files::data_ranges;
use crate::pool::{BUFFER_SIZE, BufferPool};
use crate::{DataRange, Entry, EntryPath, Kind, Links, Metadata, Timestamp};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

/// Permission bits of directories that rules make.
pub(super) const DIRECTORY_MODE: u16 = 0o755;
/// Permission bits of symbolic links.
const SYMLINK_MODE: u16 = 0o777;

/// An entry to be added, with the rule that says so.
#[derive(Debug, Clone)]
pub(super) struct Addition {
    pub(super) made: Made,
    pub(super) place: String,
}

/// The kind of an entry to be added.
#[derive(Debug, Clone)]
pub(super) enum Made {
    Directory,
    Symlink(Vec<u8>),
    File(HostFile),
}

/// A file of the host, as it was when the rule was read.
#[derive(Debug, Clone)]
pub(super) struct HostFile {
    path: PathBuf,
    state: FileState,
}

/// What tells that a file has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    mode: u16,
    mtime: Timestamp,
}

impl FileState {
    fn of(metadata: &std::fs::Metadata) -> Self {
        // The low 12 bits; less than 10^9.
        let (mode, nanoseconds) =
            ((metadata.permissions().mode() & 0o7777) as u16, metadata.mtime_nsec() as u32);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            mode,
            mtime: Timestamp { seconds: metadata.mtime(), nanoseconds },
        }
    }
}

impl HostFile {
    pub(super) fn find(path: PathBuf) -> Result<Self, RuleProblem> {
        // Not opened before its kind is known: a pipe would wait for a writer.
        let metadata = std::fs::metadata(&path).map_err(|source| RuleProblem::Read {
            action: "find",
            path: path.clone(),
            source,
        })?;
        if !metadata.is_file() {
            return Err(RuleProblem::NotFile(path));
        }
        let file = Self { state: FileState::of(&metadata), path };
        if file.state.size == 0 {
            file.check_empty()?;
        }
        Ok(file)
    }

    /// Makes sure that nothing can be read: files of the kernel's own file systems have contents that
    /// their size does not tell.
    fn check_empty(&self) -> Result<(), RuleProblem> {
        let file = File::open(&self.path).map_err(self.read("open"))?;
        match file.read_at(&mut [0], 0).map_err(self.read("read"))? {
            0 => Ok(()),
            _ => Err(RuleProblem::NoSize(self.path.clone())),
        }
    }

    fn read(&self, action: &'static str) -> impl Fn(io::Error) -> RuleProblem {
        move |source| RuleProblem::Read { action, path: self.path.clone(), source }
    }

    fn open(&self) -> Result<(File, Vec<DataRange>), RuleProblem> {
        let file = File::open(&self.path).map_err(self.read("open"))?;
        self.check(&file)?;
        let ranges = data_ranges(&file, self.state.size)
            .map_err(|error| self.read("find the holes of")(error.into()))?
            .ok_or_else(|| RuleProblem::Fragmented(self.path.clone()))?;
        Ok((file, ranges))
    }

    fn check(&self, file: &File) -> Result<(), RuleProblem> {
        let metadata = file.metadata().map_err(self.read("examine"))?;
        if FileState::of(&metadata) == self.state {
            Ok(())
        } else {
            Err(RuleProblem::Changed(self.path.clone()))
        }
    }
}

impl Addition {
    /// The entry, and its data if there is some. `now` is the time of entries that have none of
    /// their own.
    pub(super) fn entry(
        &self,
        path: &EntryPath,
        now: Timestamp,
    ) -> Result<(Entry, Option<AddedData>), RuleError> {
        let (kind, mode, mtime, data) = match &self.made {
            Made::Directory => (Kind::Directory, DIRECTORY_MODE, now, None),
            Made::Symlink(target) => (Kind::Symlink(target.clone()), SYMLINK_MODE, now, None),
            Made::File(host) => {
                let opened = host.open();
                let (file, data) = opened.map_err(|problem| self.error(problem))?;
                let FileState { size, mode, mtime, .. } = host.state;
                let ranges = data.iter().copied().collect();
                let reader = AddedData { addition: self.clone(), file, ranges };
                (Kind::Regular { size, data }, mode, mtime, Some(reader))
            }
        };
        let metadata = Metadata { mode, uid: 0, gid: 0, mtime };
        let path = path.clone();
        let (xattrs, links, replaces) = (Vec::new(), Links::Single, false);
        Ok((Entry { path, kind, metadata, xattrs, links, replaces }, data))
    }

    /// The time of what is made for this entry alone.
    pub(super) fn time(&self, now: Timestamp) -> Timestamp {
        match &self.made {
            Made::File(host) => host.state.mtime,
            _ => now,
        }
    }

    pub(super) fn error(&self, problem: RuleProblem) -> RuleError {
        RuleError::Rule { place: self.place.clone(), problem }
    }
}

/// The data of an added file, which is still to be read.
pub(super) struct AddedData {
    addition: Addition,
    file: File,
    ranges: VecDeque<DataRange>,
}

impl AddedData {
    /// The next piece; `None` behind the last, when the file is known to be as it was.
    pub(super) fn next(&mut self, pool: &BufferPool) -> Result<Option<Data>, RuleError> {
        let read = self.read(pool);
        read.map_err(|problem| self.addition.error(problem))
    }

    fn read(&mut self, pool: &BufferPool) -> Result<Option<Data>, RuleProblem> {
        let Made::File(host) = &self.addition.made else { return Ok(None) };
        let Some(range) = self.ranges.front_mut() else {
            host.check(&self.file)?;
            return Ok(None);
        };
        // At most the length of a buffer.
        let length = range.length.min(BUFFER_SIZE as u64) as usize;
        let read = |space: &mut [u8]| self.file.read_exact_at(&mut space[..length], range.offset);
        let (buffer, ()) = pool.filled(read).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => RuleProblem::Changed(host.path.clone()),
            _ => host.read("read")(error),
        })?;
        let offset = range.offset;
        range.offset += length as u64;
        range.length -= length as u64;
        if range.length == 0 {
            self.ranges.pop_front();
        }
        Ok(Some(Data { offset, chunk: Chunk::new(buffer, 0..length) }))
    }
}
