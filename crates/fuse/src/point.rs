//! A mount, told from all others: what is unmounted must be it, and not what stands at its path.

use crate::mounts::{Listed, listed, listed_by};
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags, makedev, statx};
use std::io;
use std::path::{Path, PathBuf};

/// A mount and its directory.
///
/// A directory can have several mounts on one another, and another one at any later time. So a mount is
/// known by its number and by that of its device, which are its own as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    directory: PathBuf,
    device: u64,
    /// `None` before Linux 5.8.
    mount: Option<u64>,
}

impl MountPoint {
    /// The mount that a directory is on, which is the topmost of those that are mounted there. Its file
    /// system is not asked, so one that does not answer is known as well.
    ///
    /// # Errors
    /// The directory is not there, or not for this user.
    pub fn at(directory: &Path) -> io::Result<Self> {
        let status = look(directory)?;
        let is_told = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::MNT_ID);
        Ok(Self {
            directory: directory.to_owned(),
            device: device(&status),
            mount: is_told.then_some(status.stx_mnt_id),
        })
    }

    /// The directory that it was found at.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the device of its file system.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// As the kernel lists it: with the directory that it has now. `None` if it is not there any more,
    /// or there is no list.
    #[must_use]
    pub fn listed(&self) -> Option<Listed> {
        self.pick(listed().ok()?)
    }

    /// Whether it is in the mount name space of a process.
    #[must_use]
    pub fn is_seen_by(&self, process: u32) -> bool {
        listed_by(process).is_ok_and(|list| self.pick(list).is_some())
    }

    /// Where a process sees its file system, by this or another mount.
    #[must_use]
    pub fn place_seen_by(&self, process: u32) -> Option<PathBuf> {
        let mut list = listed_by(process).ok()?.into_iter();
        list.find(|listed| listed.device == self.device).map(|listed| listed.directory)
    }

    /// Whether it is the topmost at its directory.
    pub(crate) fn is_on_top(&self) -> bool {
        Self::at(&self.directory).is_ok_and(|top| top == *self)
    }

    /// Another mount on it: over its root, or somewhere below.
    pub(crate) fn mounted_on_it(&self) -> Option<Listed> {
        let mount = self.mount?;
        listed().ok()?.into_iter().find(|other| other.parent == mount)
    }

    /// Whether a mount of the list is this one.
    pub(crate) fn is(&self, listed: &Listed) -> bool {
        listed.device == self.device
            && self.mount.map_or(listed.directory == self.directory, |mount| listed.mount == mount)
    }

    /// Of a list the entry that is this one.
    pub(crate) fn pick(&self, list: Vec<Listed>) -> Option<Listed> {
        list.into_iter().find(|listed| self.is(listed))
    }

    /// The same mount where it is now.
    pub(crate) fn moved_to(&self, directory: PathBuf) -> Self {
        Self { directory, ..self.clone() }
    }
}

/// The number of the device of the file system that a path is on, which is not asked.
pub(crate) fn device_of(path: &Path) -> io::Result<u64> {
    look(path).map(|status| device(&status))
}

fn look(path: &Path) -> io::Result<Statx> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    Ok(statx(CWD, path, flags, StatxFlags::MNT_ID)?)
}

fn device(status: &Statx) -> u64 {
    makedev(status.stx_dev_major, status.stx_dev_minor)
}
