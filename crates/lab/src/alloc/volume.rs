//! Volumes of our own as the place of an experiment: metadata is real, data is accepted and dropped.

use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_xfs::alloc::{AllocatorOptions, Variant};
use undercroft_xfs::bmap;
use undercroft_xfs::check::{CheckOptions, check};
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::{ForkKind, InodeGuard};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::units::{FileBlock, InodeNumber};
use undercroft_xfs::{Volume, ops};
use uuid::Uuid;

use super::jobs::Job;
use super::site::Site;
use crate::age::plain_inode;
use crate::error::LabError;

/// A stripe unit takes 16 blocks off the group size of 500 GiB in 16 groups, as in the source.
const STRIPE: (u64, u64) = (64 << 10, 256 << 10);

/// A new volume in a sparse file, open for changes that skip the journal.
pub(super) fn make(
    image: &Path,
    bytes: u64,
    groups: u32,
    variant: Variant,
    seed: u64,
) -> Result<Volume, LabError> {
    let failed = |source| LabError::File { path: image.to_owned(), source };
    let file = std::fs::File::create(image).map_err(failed)?;
    file.set_len(bytes).map_err(failed)?;
    let options = MkfsOptions {
        ag_count: Some(groups),
        stripe: Some(STRIPE),
        ..MkfsOptions::new(bytes, Uuid::from_u64_pair(seed, bytes))
    };
    let plan = mkfs::plan(&options)?;
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, false)?);
    let mut volume = mkfs::begin(&device, plan, &plain_inode(FileType::Directory))?;
    volume.set_allocator(AllocatorOptions { variant, ..AllocatorOptions::default() });
    Ok(volume)
}

/// Makes the volume a file system and has all of it checked.
pub(super) fn finish(volume: &Volume) -> Result<(), LabError> {
    mkfs::finish(volume, false)?;
    let mut first = None;
    let device = Arc::clone(volume.cache().device());
    let report = check(device, &CheckOptions::default(), &mut |finding| {
        first.get_or_insert_with(|| finding.to_string());
    })?;
    if report.is_clean() {
        return Ok(());
    }
    Err(LabError::Unsound(first.unwrap_or_else(|| "the check could not be completed".into())))
}

/// The directories of an experiment on a volume.
pub(super) struct OnVolume<'v> {
    volume: &'v Volume,
    directories: Vec<InodeNumber>,
}

impl<'v> OnVolume<'v> {
    /// Creates the directories, each in the next group.
    pub(super) fn new(volume: &'v Volume, directories: usize) -> Result<Self, LabError> {
        let mut root = volume.lock_inode(volume.geometry().root_inode)?;
        let mut made = Vec::with_capacity(directories);
        for number in 0..directories {
            let mut trans = volume.begin()?;
            let (name, new) = (format!("directory-{number}"), plain_inode(FileType::Directory));
            let mut directory = ops::create(&mut trans, &mut root, name.as_bytes(), &new)?;
            trans.commit(&mut [&mut root, &mut directory])?;
            made.push(directory.number);
        }
        Ok(Self { volume, directories: made })
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

    /// Delayed allocation: a write gives the file its length; what it holds is dropped.
    fn write(&self, file: &mut InodeGuard, job: &Job) -> Result<(), LabError> {
        file.core.size = job.bytes;
        file.touch();
        Ok(())
    }

    /// One extent a transaction, from all that is dirty.
    fn sync(&self, file: &mut InodeGuard, job: &Job) -> Result<(), LabError> {
        let blocks = self.volume.geometry().blocks_for(job.bytes);
        let mut done = 0;
        while done < blocks {
            let (offset, left) = (FileBlock(done), blocks - done);
            let mut trans = self.volume.begin()?;
            trans.reserve(left + u64::from(self.volume.heights().bmap_data))?;
            let extent = bmap::find_space(&mut trans, file, ForkKind::Data, (offset, left), None)?;
            bmap::add(&mut trans, file, ForkKind::Data, extent)?;
            trans.commit(&mut [&mut *file])?;
            done += u64::from(extent.len);
        }
        Ok(())
    }

    fn close(&self, file: InodeGuard) -> Result<(), LabError> {
        drop(file);
        Ok(())
    }
}
