//! Volumes of our own as the place of an experiment: metadata is real, data is accepted and dropped.

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::format::{Extent, FileType};
use undercroft_xfs::inode::{ForkKind, InodeGuard};
use undercroft_xfs::internals::bmap;
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::units::{AgNumber, FileBlock, InodeNumber};
use undercroft_xfs::{Volume, ops};
use uuid::Uuid;

use super::Variant;
use super::disk::{self, Disk};
use super::jobs::Job;
use super::site::Site;
use crate::age::plain_inode;
use crate::error::LabError;
use crate::measure::random::stream;
use crate::measure::soundness::judge;

/// On 500 GiB a stripe unit takes 16 blocks off the size of 16 groups, as in the source.
pub(super) const STRIPE: (u64, u64) = (64 << 10, 256 << 10);

/// A new volume in a sparse file, open for changes that skip the journal.
pub(super) fn make(
    image: &Path,
    bytes: u64,
    groups: Option<u32>,
    stripe: Option<(u64, u64)>,
    variant: Variant,
    seed: u64,
) -> Result<Volume, LabError> {
    let failed = |source| LabError::File { path: image.to_owned(), source };
    let file = std::fs::File::create(image).map_err(failed)?;
    file.set_len(bytes).map_err(failed)?;
    let options = MkfsOptions {
        ag_count: groups,
        stripe,
        ..MkfsOptions::new(bytes, Uuid::from_u64_pair(seed, bytes))
    };
    let plan = mkfs::plan(&options)?;
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false)?);
    let mut volume = mkfs::begin(&device, plan, &plain_inode(FileType::Directory))?;
    volume.set_near_search(variant.search());
    Ok(volume)
}

/// Makes the volume a file system and has all of it checked.
pub(super) fn finish(volume: &Volume) -> Result<(), LabError> {
    mkfs::finish(volume, false)?;
    judge(Arc::clone(volume.cache().device()))
}

/// The directories of an experiment on a volume.
pub(super) struct OnVolume<'v> {
    volume: &'v Volume,
    directories: Vec<InodeNumber>,
    headers: Headers,
    disk: Mutex<Disk>,
    /// Files get room ahead until they are closed.
    sets_aside: bool,
}

/// How often an extent is wanted from a group whose header is on its way to the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// Share of the extents.
    pub(super) share: f64,
    pub(super) seed: u64,
}

/// Purposes of random numbers for the headers, by file.
const HEADERS: u64 = 1 << 40;

/// How long a header is written at most: an allocation that finds no other group waits for it.
const HEADER_WRITE: Duration = Duration::from_millis(20);

/// Does `work` while another thread holds a group, as the kernel does while the header is written
/// back.
fn while_written<T>(
    volume: &Volume,
    ag: AgNumber,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<T, LabError> {
    let ((held, is_held), (over, is_over)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        let holder = scope.spawn(move || {
            let mut trans = volume.begin()?;
            trans.with_group(ag, true, |_, _| Ok(()))?;
            drop(held);
            // It ends when the other end is dropped.
            let _ = is_over.recv_timeout(HEADER_WRITE);
            Ok::<_, LabError>(())
        });
        // So does this one.
        let _: Result<(), _> = is_held.recv();
        let result = work();
        drop(over);
        match holder.join() {
            Ok(done) => done.and(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl<'v> OnVolume<'v> {
    /// Creates the directories, each in the next group. So many files are `in_flight` at a time.
    pub(super) fn new(
        volume: &'v Volume,
        directories: usize,
        headers: Headers,
        in_flight: usize,
    ) -> Result<Self, LabError> {
        let mut root = volume.lock_inode(volume.geometry().root_inode)?;
        let mut made = Vec::with_capacity(directories);
        for number in 0..directories {
            let mut trans = volume.begin()?;
            let (name, new) = (format!("directory-{number}"), plain_inode(FileType::Directory));
            let mut directory = ops::create(&mut trans, &mut root, name.as_bytes(), &new)?;
            trans.commit(&mut [&mut root, &mut directory])?;
            made.push(directory.number);
        }
        let (disk, sets_aside) = (Mutex::new(Disk::new(in_flight)), in_flight > 0);
        Ok(Self { volume, directories: made, headers, disk, sets_aside })
    }
}

impl OnVolume<'_> {
    /// Maps up to `len` blocks from `offset` in one extent.
    fn allocate(&self, file: &mut InodeGuard, offset: u64, len: u64) -> Result<Extent, LabError> {
        let room = bmap::AllocationWindow::only(FileBlock(offset)..FileBlock(offset + len));
        let mut trans = self.volume.begin()?;
        trans.reserve(len + u64::from(self.volume.heights().bmap_data))?;
        let extent = bmap::find_space(&mut trans, file, &room)?;
        bmap::add(&mut trans, file, ForkKind::Data, &[extent])?;
        trans.commit(&mut [file])?;
        Ok(extent)
    }

    /// Frees the space reserved behind the end of a file that has arrived.
    fn trim(&self, file: InodeNumber) -> Result<(), LabError> {
        let mut file = self.volume.lock_inode(file)?;
        let end = FileBlock(self.volume.geometry().blocks_for(file.core.size));
        let mut trans = self.volume.begin()?;
        while bmap::remove(&mut trans, &mut file, ForkKind::Data, end, FileBlock::MAX)? {}
        trans.commit(&mut [&mut file])?;
        Ok(())
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // A writer that panicked ends the experiment.
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Site for OnVolume<'_> {
    type File = InodeGuard;

    fn create(&self, job: &Job) -> Result<InodeGuard, LabError> {
        let mut directory = self.volume.lock_inode(self.directories[job.directory])?;
        let mut trans = self.volume.begin()?;
        let (name, new) = (format!("file-{}", job.number), plain_inode(FileType::Regular));
        let mut file = ops::create(&mut trans, &mut directory, name.as_bytes(), &new)?;
        trans.commit(&mut [&mut directory, &mut file])?;
        Ok(file)
    }

    /// Delayed allocation: a write gives the file its length; its data is dropped.
    fn write(&self, file: &mut InodeGuard, job: &Job) -> Result<(), LabError> {
        file.core.size = job.bytes;
        file.touch();
        Ok(())
    }

    /// One extent a transaction, for all dirty data, and the space reserved behind it.
    fn sync(&self, file: &mut InodeGuard, job: &Job) -> Result<(), LabError> {
        let geometry = self.volume.geometry();
        let blocks = geometry.blocks_for(job.bytes);
        let room = if self.sets_aside { disk::set_aside(self.volume, job.bytes) } else { blocks };
        let mut random = stream(self.headers.seed, HEADERS + job.number as u64);
        let (mut done, mut near) = (0, geometry.split_inode(file.number).0);
        while done < blocks {
            let mut allocate = || self.allocate(file, done, room - done);
            let extent = if random.f64() < self.headers.share {
                while_written(self.volume, near, allocate)?
            } else {
                allocate()?
            };
            done += u64::from(extent.len);
            near = geometry.split_block(extent.start).0;
        }
        Ok(())
    }

    /// The file is on its way to the disk; the one that arrives meanwhile is closed.
    fn close(&self, file: InodeGuard) -> Result<(), LabError> {
        let (number, bytes) = (file.number, file.core.size);
        drop(file);
        let arrived = self.disk().send(number, bytes);
        arrived.map_or(Ok(()), |arrived| self.trim(arrived))
    }

    fn finish(&self) -> Result<(), LabError> {
        while let Some(arrived) = { self.disk().arrival() } {
            self.trim(arrived)?;
        }
        Ok(())
    }
}
