//! A volume of ours: one call of the library for each operation.

use std::path::Path;

use undercroft_xfs::format::FileType;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

use super::target::{Directories, Target};
use crate::error::LabError;
use crate::measure::live_image::{self, new_inode, now};

/// A live volume.
pub(super) struct VolumeTarget {
    volume: Volume,
}

/// The directories of one round.
struct Made<'t> {
    volume: &'t Volume,
    name: String,
    own: InodeNumber,
    numbers: Vec<InodeNumber>,
}

impl VolumeTarget {
    /// Opens the volume in the file at `path`; makes one of `bytes` bytes if there is no such file.
    pub(super) fn open(path: &Path, bytes: u64) -> Result<Self, LabError> {
        let (_, volume) = live_image::open(path, bytes)?;
        Ok(Self { volume })
    }
}

impl Target for VolumeTarget {
    fn make_directories(&self, count: usize) -> Result<Box<dyn Directories + '_>, LabError> {
        let volume = &self.volume;
        let name = format!("meta-{:08x}", fastrand::u32(..));
        let make = |parent, name: &str| {
            ops::make(volume, parent, name.as_bytes(), &new_inode(FileType::Directory))
        };
        let own = make(volume.geometry().root_inode, &name)?;
        let numbers = (0..count).map(|index| make(own, &index.to_string()));
        let numbers = numbers.collect::<Result<_, Error>>()?;
        Ok(Box::new(Made { volume, name, own, numbers }))
    }

    fn sync(&self) -> Result<(), LabError> {
        Ok(self.volume.sync()?)
    }

    fn close(self: Box<Self>) -> Result<(), LabError> {
        Ok(self.volume.close()?)
    }
}

impl Directories for Made<'_> {
    fn create(&self, directory: usize, name: &str) -> Result<(), LabError> {
        let new = new_inode(FileType::Regular);
        ops::make(self.volume, self.numbers[directory], name.as_bytes(), &new)?;
        Ok(())
    }

    fn stat(&self, directory: usize, name: &str) -> Result<u64, LabError> {
        let directory = self.volume.inode(self.numbers[directory])?;
        let found = ops::lookup(self.volume, &directory.read(), name.as_bytes())?;
        let number = found.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(self.volume.inode(number)?.read().core.nlink.into())
    }

    fn delete(&self, directory: usize, name: &str) -> Result<(), LabError> {
        let parent = self.numbers[directory];
        ops::unlink(self.volume, parent, name.as_bytes(), now())?;
        Ok(())
    }

    fn remove(self: Box<Self>) -> Result<(), LabError> {
        let remove = |parent, name: &str| ops::rmdir(self.volume, parent, name.as_bytes(), now());
        for index in 0..self.numbers.len() {
            remove(self.own, &index.to_string())?;
        }
        remove(self.volume.geometry().root_inode, &self.name)?;
        Ok(())
    }
}
