//! A volume of ours.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;
use undercroft_block::{BlockDevice, Engine, FileDevice, FileOptions};
use undercroft_xfs::data::{Files, FilesOptions};
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode, Times};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

use super::target::{Answers, Counters, Target};
use crate::error::LabError;
use crate::latency::LatencyRecorder;

/// Bytes of zeros written at a time to a new image.
const CHUNK: usize = 4 << 20;

/// Size of a record of the journal: the largest, fewest writes.
const RECORD_BYTES: u32 = 256 << 10;

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
        if !path.exists() {
            make(path, bytes)?;
        }
        // The thread that needs an I/O done does it: all who wait here wait for the disk.
        let options = FileOptions { engine: Engine::Threads, threads: 0, ..FileOptions::default() };
        let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open_with(path, &options)?);
        let live = LiveOptions { record_bytes: RECORD_BYTES };
        let volume = Arc::new(Volume::open_live(Arc::clone(&device), &live)?);
        let files = Files::new(volume, &FilesOptions::default())?;
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
        }
    }
}

/// An empty volume in a new file whose every block was written, so that the file system that the
/// file is on has nothing to allocate any more.
fn make(path: &Path, bytes: u64) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: path.to_owned(), source };
    let mut file = File::create_new(path).map_err(failed)?;
    let zeros = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let len = left.min(CHUNK as u64);
        file.write_all(&zeros[..len as usize]).map_err(failed)?;
        left -= len;
    }
    file.sync_all().map_err(failed)?;
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, false)?);
    let options = MkfsOptions::new(bytes, Uuid::from_u128(u128::from(fastrand::u64(..))));
    let plan = mkfs::plan(&options)?;
    let volume = mkfs::begin(&device, plan, &new_inode(FileType::Directory))?;
    mkfs::finish(&volume, true)?;
    Ok(())
}

fn new_inode(kind: FileType) -> NewInode<'static> {
    let now = now();
    NewInode {
        mode: kind.mode_bits() | 0o755,
        uid: 0,
        gid: 0,
        times: Times { access: now, modification: now, change: now, creation: now },
        device: DeviceNumber { major: 0, minor: 0 },
        target: &[],
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp { seconds, nanoseconds: since.subsec_nanos() }
}
