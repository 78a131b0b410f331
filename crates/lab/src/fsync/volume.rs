//! A volume of ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use undercroft_block::BlockDevice;
use undercroft_xfs::Error;
use undercroft_xfs::data::{Files, FilesOptions};
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;

use super::target::{Answers, Counters, Target};
use crate::error::LabError;
use crate::latency::LatencyRecorder;
use crate::live_image::{self, new_inode, now};

/// A live volume with its data in memory.
pub(super) struct VolumeTarget {
    files: Files,
    device: Arc<dyn BlockDevice>,
    directories: RwLock<Vec<InodeNumber>>,
}

/// Tickets of one thread.
pub(super) struct Tickets<'t> {
    files: &'t Files,
    answers: Arc<Answers>,
}

impl VolumeTarget {
    /// Opens the volume in the file at `path`; makes one of `bytes` bytes if there is no such file.
    pub(super) fn open(path: &Path, bytes: u64) -> Result<Self, LabError> {
        let (device, volume) = live_image::open(path, bytes)?;
        let files = Files::new(Arc::new(volume), &FilesOptions::default())?;
        Ok(Self { files, device, directories: RwLock::default() })
    }

    /// Leaves the volume as an unmount does.
    pub(super) fn close(self) -> Result<(), LabError> {
        Ok(self.files.close()?)
    }

    fn directory(&self, index: usize) -> InodeNumber {
        self.directories.read()[index]
    }

    fn make(&self, parent: InodeNumber, name: &str, kind: FileType) -> Result<InodeNumber, Error> {
        let volume = self.files.volume();
        ops::make(volume, parent, name.as_bytes(), &new_inode(kind))
    }
}

impl Target for VolumeTarget {
    type File = Arc<Inode>;
    type Queue<'t> = Tickets<'t>;

    fn make_directory(&self, name: &str) -> Result<usize, LabError> {
        let root = self.files.volume().geometry().root_inode;
        let number = self.make(root, name, FileType::Directory)?;
        let mut directories = self.directories.write();
        directories.push(number);
        Ok(directories.len() - 1)
    }

    fn create(&self, directory: usize, name: &str) -> Result<Arc<Inode>, LabError> {
        let number = self.make(self.directory(directory), name, FileType::Regular)?;
        Ok(self.files.volume().inode(number)?)
    }

    fn open(&self, directory: usize, name: &str) -> Result<Arc<Inode>, LabError> {
        let volume = self.files.volume();
        let directory = volume.inode(self.directory(directory))?;
        let found = ops::lookup(volume, &directory.read(), name.as_bytes())?;
        Ok(volume.inode(found.ok_or_else(|| Error::NotFound(name.to_owned()))?)?)
    }

    fn write(
        &self,
        file: &Arc<Inode>,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        len: usize,
    ) -> Result<(), LabError> {
        Ok(self.files.write(file, offset, memory, 0..len, now())?)
    }

    fn fsync(&self, file: &Arc<Inode>) -> Result<(), LabError> {
        Ok(self.files.fsync_and_wait(file)?)
    }

    fn sync(&self) -> Result<(), LabError> {
        Ok(self.files.sync_and_wait()?)
    }

    fn queue(&self) -> Result<Tickets<'_>, LabError> {
        Ok(Tickets { files: &self.files, answers: Arc::default() })
    }

    fn submit(queue: &mut Tickets<'_>, file: Arc<Inode>) -> Result<(), LabError> {
        let (start, answers) = (Instant::now(), Arc::clone(&queue.answers));
        answers.expect();
        queue.files.fsync(&file).on_complete(move |result| answers.answered(start, result));
        Ok(())
    }

    fn finish(queue: &mut Tickets<'_>) -> Result<LatencyRecorder, LabError> {
        queue.answers.wait()
    }

    fn counters(&self) -> Counters {
        let below = self.device.statistics();
        let log_writes = self.files.volume().open_checkpoint();
        Counters {
            log_writes,
            // The record with the commit is written with forced unit access.
            flushes: log_writes.map(|writes| below.flushes + writes),
            tag_waits: Some(below.waits),
            bytes: Some((below.bytes_written, below.bytes_read)),
        }
    }
}
