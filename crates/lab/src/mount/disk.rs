//! A disk: an image, and the place where its volume is mounted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rustix::fs::FallocateFlags;
use rustix::process::{getegid, geteuid};
use undercroft_block::experiments::{CompletionPlace, Placement, QueuePlace, Redirect, RqAffinity};
use undercroft_block::{
    BlockDevice, CpuSet, Drive, Engine, FileDevice, FileOptions, QueueOptions, SECTOR_SIZE,
    Statistics,
};
use undercroft_fs::{FileSystem, OpenOptions};
use undercroft_fuse::{InUse, Log, Mount, Settings, Target, UnmountFailure};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

use super::project::Project;
use super::{Step, Tunables};
use crate::error::LabError;
use crate::measure::live_image::new_inode;
use crate::measure::soundness;

/// Memory for metadata of a mounted volume, half of the bound that `undercroft mount` has.
const CACHE_BYTES: usize = 128 << 20;

/// An image and its place.
pub(super) struct Disk {
    image: PathBuf,
    directory: PathBuf,
    bytes: u64,
    /// The CPU that stands for that of the interrupts of the disk.
    cpu: u32,
}

/// A disk open with one setting, from mkfs to the last step.
pub(super) struct Series<'d> {
    disk: &'d Disk,
    device: Arc<dyn BlockDevice>,
}

impl Disk {
    /// Makes disk `index` in `scratch`; its blocks are reserved.
    pub(super) fn make(
        scratch: &Path,
        index: usize,
        bytes: u64,
        cpu: u32,
    ) -> Result<Self, LabError> {
        let (image, directory) =
            (scratch.join(format!("disk-{index}.img")), scratch.join(format!("disk-{index}")));
        let failed = |path: &Path, source| LabError::File { path: path.to_owned(), source };
        fs::create_dir(&directory).map_err(|source| failed(&directory, source))?;
        File::create_new(&image)
            .and_then(|file| Ok(rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?))
            .map_err(|source| failed(&image, source))?;
        Ok(Self { image, directory, bytes, cpu })
    }

    /// Opens it for a run with `tunables`.
    pub(super) fn begin(&self, tunables: Tunables, cpus: &[u32]) -> Result<Series<'_>, LabError> {
        let device = self.open(cpus)?;
        device.set_placement(&self.placement(tunables));
        Ok(Series { disk: self, device })
    }

    /// The image as a disk with a queue on each CPU: around the page cache, if the file system that it
    /// is on does that for single sectors.
    fn open(&self, cpus: &[u32]) -> Result<Arc<dyn BlockDevice>, LabError> {
        let queue = QueueOptions {
            drive: Drive::Threads(1),
            hardware_queues: cpus.len(),
            thread_cpus: cpus.iter().map(|&cpu| CpuSet::only(cpu)).collect(),
            ..QueueOptions::default()
        };
        let options = FileOptions { direct: true, threads: 1, queue, ..FileOptions::default() };
        if let Ok(device) = FileDevice::open_with(&self.image, &options)
            && device.limits().block_bytes == SECTOR_SIZE
        {
            return Ok(Arc::new(device));
        }
        let options = FileOptions { direct: false, engine: Engine::Threads, ..options };
        Ok(Arc::new(FileDevice::open_with(&self.image, &options)?))
    }

    fn placement(&self, tunables: Tunables) -> Placement {
        let only = || CpuSet::only(self.cpu);
        let Tunables { queue_affinity, completion_affinity, rq_affinity } = tunables;
        Placement {
            queue: if queue_affinity { QueuePlace::Cpus(only()) } else { QueuePlace::Submitter },
            completion: match (completion_affinity, rq_affinity) {
                (true, _) => CompletionPlace::Cpus(only()),
                (false, 0) => CompletionPlace::Affinity(RqAffinity::Off),
                (false, _) => CompletionPlace::Affinity(RqAffinity::Group),
            },
            redirect: Redirect::Threads,
        }
    }

    /// An empty volume, owned by the user of this process.
    fn mkfs(&self, device: &Arc<dyn BlockDevice>) -> Result<(), LabError> {
        let uuid = Uuid::from_u128(u128::from(fastrand::u64(..)));
        let plan = mkfs::plan(&MkfsOptions::new(self.bytes, uuid))?;
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let root = NewInode { uid, gid, ..new_inode(FileType::Directory) };
        let volume = mkfs::begin(device, plan, &root)?;
        mkfs::finish(&volume, true)?;
        Ok(())
    }
}

impl Series<'_> {
    /// Does a step; the seconds that it took, with mount and unmount.
    pub(super) fn timed(&self, step: Step, project: &Project) -> Result<f64, LabError> {
        let begun = Instant::now();
        if step == Step::Mkfs {
            self.disk.mkfs(&self.device)?;
        }
        self.mounted(|top| match step {
            Step::Mkfs => Ok(()),
            Step::Untar => project.unpack(top),
            Step::Make => project.make(top),
            Step::Clean => project.clean(top),
        })?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Whether what was built works, read anew.
    pub(super) fn prove(&self, project: &Project) -> Result<(), LabError> {
        self.mounted(|top| project.prove(top))
    }

    /// What the device has counted.
    pub(super) fn statistics(&self) -> Statistics {
        self.device.statistics()
    }

    /// Whether the volume is sound, once nothing is mounted.
    pub(super) fn judge(self) -> Result<(), LabError> {
        soundness::judge(self.device)
    }

    /// Mounts the volume while `work` is done on it.
    fn mounted(&self, work: impl FnOnce(&Path) -> Result<(), LabError>) -> Result<(), LabError> {
        let fs = FileSystem::open(Arc::clone(&self.device), &OpenOptions::writable())?;
        fs.volume().cache().set_limit(CACHE_BYTES);
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&said);
        let log = Log::new(move |line| sink.lock().push(line.to_owned()));
        let at = self.disk.directory.as_path();
        let settings = Settings::new(self.disk.image.display().to_string());
        let mount = Mount::new(fs, Target::Directory(at.to_owned()), &settings, log, || {})?;
        let worked = work(at);
        let ended = end(mount);
        worked.and(ended)?;
        let first = said.lock().first().cloned();
        first.map_or(Ok(()), |line| Err(LabError::Server(line)))
    }
}

/// Unmounts. A mount that a program of a failed step still uses goes without it.
fn end(mount: Mount) -> Result<(), LabError> {
    let point = mount.point().cloned();
    let unmount = |in_use| point.as_ref().map_or(Ok(()), |point| point.unmount(in_use));
    match unmount(InUse::Refuse) {
        Ok(()) => mount.finish()?.release(),
        Err(failure) => {
            if matches!(failure, UnmountFailure::InUse(_)) {
                unmount(InUse::Detach)?;
            }
            mount.abandon()?.release();
            return Err(failure.into());
        }
    }
    Ok(())
}
