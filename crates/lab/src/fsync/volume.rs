//! A volume of ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use undercroft_block::BlockDevice;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, OpenFile, Volume};

use super::target::{Answers, Counters, Target};
use crate::error::LabError;
use crate::measure::latency::LatencyRecorder;
use crate::measure::live_image::{self, new_inode, now};

/// A live volume with its data in memory.
pub(super) struct VolumeTarget {
    volume: Arc<Volume>,
    device: Arc<dyn BlockDevice>,
    directories: RwLock<Vec<InodeNumber>>,
}

/// Tickets of one thread.
pub(super) struct Tickets {
    answers: Arc<Answers>,
}

impl VolumeTarget {
    /// Opens the volume in the file at `path`; makes one of `bytes` bytes if there is no such file.
    pub(super) fn open(path: &Path, bytes: u64) -> Result<Self, LabError> {
        let (device, volume) = live_image::open(path, bytes)?;
        Ok(Self { volume: Arc::new(volume), device, directories: RwLock::default() })
    }

    /// Leaves the volume as an unmount does.
    pub(super) fn close(self) -> Result<(), LabError> {
        Ok(self.volume.close()?)
    }

    fn directory(&self, index: usize) -> InodeNumber {
        self.directories.read()[index]
    }

    fn make(&self, parent: InodeNumber, name: &str, kind: FileType) -> Result<InodeNumber, Error> {
        ops::make(&self.volume, parent, name.as_bytes(), &new_inode(kind))
    }
}

impl Target for VolumeTarget {
    type File = OpenFile;
    type Queue<'t> = Tickets;

    fn make_directory(&self, name: &str) -> Result<usize, LabError> {
        let root = self.volume.geometry().root_inode;
        let number = self.make(root, name, FileType::Directory)?;
        let mut directories = self.directories.write();
        directories.push(number);
        Ok(directories.len() - 1)
    }

    fn create(&self, directory: usize, name: &str) -> Result<OpenFile, LabError> {
        let new = new_inode(FileType::Regular);
        let parent = self.directory(directory);
        Ok(ops::make_open(&self.volume, parent, name.as_bytes(), &new)?)
    }

    fn open(&self, directory: usize, name: &str) -> Result<OpenFile, LabError> {
        let volume = &self.volume;
        let directory = volume.inode(self.directory(directory))?;
        let found = ops::lookup(volume, &directory.read(), name.as_bytes())?;
        let number = found.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(OpenFile::open(volume, number)?)
    }

    fn write(
        &self,
        file: &OpenFile,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        len: usize,
    ) -> Result<(), LabError> {
        Ok(file.write_shared(offset, memory, 0..len, now())?)
    }

    fn fsync(&self, file: &OpenFile) -> Result<(), LabError> {
        Ok(file.fsync_and_wait()?)
    }

    fn sync(&self) -> Result<(), LabError> {
        Ok(self.volume.sync_all_and_wait()?)
    }

    fn queue(&self) -> Result<Tickets, LabError> {
        Ok(Tickets { answers: Arc::default() })
    }

    fn submit(queue: &mut Tickets, file: OpenFile) -> Result<(), LabError> {
        let (start, answers) = (Instant::now(), Arc::clone(&queue.answers));
        answers.expect();
        file.fsync().on_complete(move |result| answers.answered(start, result));
        Ok(())
    }

    fn finish(queue: &mut Tickets) -> Result<LatencyRecorder, LabError> {
        queue.answers.wait()
    }

    fn counters(&self) -> Counters {
        let below = self.device.statistics();
        let log_writes = self.volume.open_checkpoint();
        Counters {
            log_writes,
            // The record with the commit is written with forced unit access.
            flushes: log_writes.map(|writes| below.flushes + writes),
            tag_waits: Some(below.waits),
            bytes: Some((below.bytes_written, below.bytes_read)),
        }
    }
}
