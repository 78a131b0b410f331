//! One writer: a program that opens a file or disk to change it has it alone, as long as it is
//! open.
//!
//! A file has an advisory lock (`flock`), which all users of this library ask for. A disk is opened
//! for one holder, as a mount does. A loop device makes a disk of a file, so the holder of one has
//! both: the disks over a file are held, and the file below a disk is locked.
//!
//! Nothing keeps a kernel from making one more loop device of a locked file, and from mounting
//! that. So [`Exclusive::check`] looks again. Not seen are mounts in other mount namespaces through
//! loop devices that this process may not open, and what other machines do with a shared disk; a
//! file system without locks has none to ask for. Without /proc there is no list of mounts: loop
//! devices over a file are held all the same where /sys tells of them, which a mount excludes.

mod alone;
mod loops;
mod mounts;
mod watch;

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use crate::driver::{Holder, OpenError, Taken};
use alone::open_alone;
use watch::Watch;

/// How often a file or disk in use is tried again: a program that ended a moment ago, or
/// was started by one that has it, keeps it until the kernel is done with that.
const PATIENCE: u32 = 30;

/// The pause between two times.
const PAUSE: Duration = Duration::from_millis(10);

/// The right to change a file or disk, as long as it lives. A [`FileDevice`](crate::FileDevice)
/// that is open for change has it already.
#[derive(Debug)]
pub struct Exclusive {
    name: String,
    /// What a disk stands on, if that is a disk. It is only kept open.
    _below: Option<File>,
    watch: Option<Watch>,
}

impl Exclusive {
    /// Takes the file or disk that is open as `file`. A file is locked through its descriptor. A
    /// disk is opened once more, for reading and writing: use the descriptor that comes back, which
    /// is the one that the kernel lets empty its cache.
    ///
    /// # Errors
    /// It is in use, or the operating system does not tell.
    pub fn claim(file: File, name: &str) -> Result<(File, Self), OpenError> {
        let claim = || {
            let metadata = file.metadata()?;
            if metadata.file_type().is_block_device() {
                let (disk, below, watch) = claim_disk(&file, metadata.rdev())?;
                return Ok((Some(disk), below, watch));
            }
            Ok((None, None, Some(claim_file(file.try_clone()?, None)?)))
        };
        let name = name.to_owned();
        let mut claimed = claim();
        for _ in 0..PATIENCE {
            match &claimed {
                Err(Refusal::Taken(Holder::Program | Holder::Device(_))) => thread::sleep(PAUSE),
                _ => break,
            }
            claimed = claim();
        }
        match claimed {
            Ok((disk, below, watch)) => {
                Ok((disk.unwrap_or(file), Self { name, _below: below, watch }))
            }
            Err(Refusal::Taken(holder)) => Err(Taken { name, holder }.into()),
            Err(Refusal::Failed(source)) => Err(OpenError::Open { name, source }),
        }
    }

    /// Looks whether it is still so. Two system calls most of the time.
    ///
    /// # Errors
    /// It was mounted meanwhile, or lost its name.
    pub fn check(&self) -> Result<(), Taken> {
        let intruder = self.watch.as_ref().and_then(Watch::intruder);
        intruder.map_or(Ok(()), |holder| Err(Taken { name: self.name.clone(), holder }))
    }
}

/// A file or disk that no program changes that asks first, as long as it lives: its readers see one
/// state of it.
#[derive(Debug)]
pub struct Unchanging {
    _lock: File,
}

impl Unchanging {
    /// Of the file or disk at `path`. A file is locked together with other readers, also one below a
    /// loop device. Any other disk is looked at once.
    ///
    /// # Errors
    /// It is open for change or mounted, or the operating system does not tell.
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        if let Some(at) = mounted_at(path) {
            return Err(Taken { name, holder: Holder::Mount(at) }.into());
        }
        let mut shared = share(path);
        for _ in 0..PATIENCE {
            match &shared {
                Err(Refusal::Taken(_)) => thread::sleep(PAUSE),
                _ => break,
            }
            shared = share(path);
        }
        match shared {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(Refusal::Taken(holder)) => Err(Taken { name, holder }.into()),
            Err(Refusal::Failed(source)) => Err(OpenError::Open { name, source }),
        }
    }
}

/// Locks a file, or that below a disk, together with others who read it.
fn share(path: &Path) -> Result<File, Refusal> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let file = match metadata.file_type().is_block_device() {
        true => {
            reopen_alone(&file, false)?;
            loops::backing(metadata.rdev()).map_or(file, |(_, below)| below)
        }
        false => file,
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(Refusal::Taken(Holder::Program)),
        // There may be none to ask for.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(file),
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        // The kernel may keep the file open a while, for a ring that was dropped.
        self.watch.iter().for_each(Watch::unlock);
    }
}

/// Why something cannot be had.
enum Refusal {
    Taken(Holder),
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Locks a file, and holds the loop devices over it, but for the one whose number is `own`.
fn claim_file(file: File, own: Option<u64>) -> Result<Watch, Refusal> {
    let watch = Watch::new(file, own)?;
    if let Some(holder) = watch.intruder() {
        return Err(Refusal::Taken(holder));
    }
    match watch.lock() {
        Ok(()) => Ok(watch),
        Err(TryLockError::WouldBlock) => Err(Refusal::Taken(Holder::Program)),
        Err(TryLockError::Error(error)) => match error.raw_os_error().map(Errno::from_raw_os_error)
        {
            // There is nothing to ask for.
            Some(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => Ok(watch),
            _ => Err(error.into()),
        },
    }
}

/// Opens once more, for this process alone, the disk that is open as `file`: its path may lead
/// elsewhere by now.
fn reopen_alone(file: &File, write: bool) -> Result<File, Refusal> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    open_alone(&path, write).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => Refusal::Taken(Holder::Program),
        io::ErrorKind::NotFound => Refusal::Failed(io::Error::new(
            io::ErrorKind::NotFound,
            "a disk is opened for one program alone through /proc, which is not mounted: \
             `mount -t proc proc /proc`",
        )),
        _ => error.into(),
    })
}

/// Takes the disk `number`, which is open as `file`, and the file below it if it is a loop device.
fn claim_disk(file: &File, number: u64) -> Result<(File, Option<File>, Option<Watch>), Refusal> {
    let mounts = mounts::read()?;
    if let Some(at) = mounts::of_disk(number, &mounts) {
        return Err(Refusal::Taken(Holder::Mount(at)));
    }
    let file = reopen_alone(file, true)?;
    let Some((device, backing)) = loops::backing(number) else { return Ok((file, None, None)) };
    if backing.metadata()?.file_type().is_file() {
        return Ok((file, None, Some(claim_file(backing, Some(device))?)));
    }
    // A loop device over a disk: the kernel did not ask for that disk alone, so this does.
    Ok((file, Some(reopen_alone(&backing, false)?), None))
}

/// Where the file or disk at `path` is mounted, itself or through a loop device over it, as far as
/// this process can see. A reader reads what may be changing then.
#[must_use]
pub fn mounted_at(path: &Path) -> Option<PathBuf> {
    let metadata = path.metadata().ok()?;
    let mounts = mounts::read().ok()?;
    if metadata.file_type().is_block_device() {
        return mounts::of_disk(metadata.rdev(), &mounts);
    }
    let identity = (metadata.dev(), metadata.ino());
    loops::over(identity).iter().find_map(|device| mounts::of_disk(device.number, &mounts))
}
