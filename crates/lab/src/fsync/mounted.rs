//! A directory of a mounted file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustix::fs::{major, minor, syncfs};

use super::ring::FsyncRing;
use super::target::{Counters, Target};
use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;

/// A directory that the workload makes its own directories in.
pub(super) struct Mounted {
    top: PathBuf,
    directories: RwLock<Vec<PathBuf>>,
    /// What the kernel counts of an XFS on this device, and of the device.
    counts: Option<(PathBuf, PathBuf)>,
}

impl Mounted {
    /// # Errors
    /// It is no directory.
    pub(super) fn new(top: &Path) -> Result<Self, LabError> {
        let metadata = fs::metadata(top).map_err(failed("open", top))?;
        let device = format!("/sys/dev/block/{}:{}", major(metadata.dev()), minor(metadata.dev()));
        let name =
            fs::canonicalize(&device).ok().and_then(|path| Some(path.file_name()?.to_owned()));
        let counts = name.map(|name| {
            let xfs = Path::new("/sys/fs/xfs").join(name).join("stats/stats");
            (xfs, Path::new(&device).join("stat"))
        });
        Ok(Self { top: top.to_owned(), directories: RwLock::default(), counts })
    }

    fn path(&self, directory: usize, name: &str) -> PathBuf {
        self.directories.read()[directory].join(name)
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LabError {
    move |source| LabError::Target { what, path: path.to_owned(), source }
}

impl Target for Mounted {
    type File = File;
    type Queue<'t> = (FsyncRing, &'t Path);

    fn make_directory(&self, name: &str) -> Result<usize, LabError> {
        let path = self.top.join(name);
        fs::create_dir(&path).map_err(failed("create", &path))?;
        let mut directories = self.directories.write();
        directories.push(path);
        Ok(directories.len() - 1)
    }

    fn create(&self, directory: usize, name: &str) -> Result<File, LabError> {
        let path = self.path(directory, name);
        File::create_new(&path).map_err(failed("create", &path))
    }

    fn open(&self, directory: usize, name: &str) -> Result<File, LabError> {
        let path = self.path(directory, name);
        OpenOptions::new().write(true).open(&path).map_err(failed("open", &path))
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        len: usize,
    ) -> Result<(), LabError> {
        file.write_all_at(&memory[..len], offset).map_err(failed("write to", &self.top))
    }

    fn fsync(&self, file: &File) -> Result<(), LabError> {
        file.sync_all().map_err(failed("fsync a file in", &self.top))
    }

    fn sync(&self) -> Result<(), LabError> {
        let top = File::open(&self.top).map_err(failed("open", &self.top))?;
        syncfs(top.as_fd()).map_err(|error| failed("sync", &self.top)(error.into()))
    }

    fn queue(&self) -> Result<Self::Queue<'_>, LabError> {
        let ring = FsyncRing::new().map_err(failed("make a ring for", &self.top))?;
        Ok((ring, &self.top))
    }

    fn submit((ring, top): &mut Self::Queue<'_>, file: File) -> Result<(), LabError> {
        ring.submit(file).map_err(failed("fsync a file in", top))
    }

    fn finish((ring, top): &mut Self::Queue<'_>) -> Result<LatencyRecorder, LabError> {
        ring.finish().map_err(failed("fsync a file in", top))
    }

    fn counters(&self) -> Counters {
        let Some((xfs, device)) = &self.counts else { return Counters::default() };
        let field = |path: &Path, line: &str, index: usize| -> Option<u64> {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|text| text.starts_with(line))?;
            line.split_whitespace().nth(index)?.parse().ok()
        };
        Counters {
            // `log`, then the number of writes.
            log_writes: field(xfs, "log ", 1),
            // The sixteenth number of the statistics of a disk counts flushes, the seventh sectors
            // written and the third sectors read.
            flushes: field(device, "", 15),
            tag_waits: None,
            bytes: field(device, "", 6)
                .zip(field(device, "", 2))
                .map(|(written, read)| (512 * written, 512 * read)),
        }
    }
}
