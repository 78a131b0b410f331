//! Whether a locked file stays a file with one writer.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::alone::hold;
use super::loops::Identity;
use super::{loops, mounts};
use crate::driver::Holder;

/// The list of loop devices is read so seldom that it takes at most one part in so many of all time.
/// Mounts in this namespace are told by the kernel at once.
const SHARE: u32 = 20;

/// A file that is watched.
#[derive(Debug)]
pub(super) struct Watch {
    file: File,
    identity: Identity,
    /// The loop device through which we have it.
    own: Option<u64>,
    /// It had a name when it was opened.
    is_named: bool,
    /// The list of mounts, of which the kernel tells when it has changed; `None` without /proc.
    mounts: Option<File>,
    scan: Mutex<Scan>,
}

/// The result of a look through the loop devices.
#[derive(Debug)]
struct Scan {
    /// When to look again.
    next: Instant,
    /// Loop devices over the file, by number, kept from being mounted as far as they may be opened.
    held: Vec<(u64, Option<File>)>,
}

impl Watch {
    pub(super) fn new(file: File, own: Option<u64>) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let mounts = mounts::open()?;
        let identity = (metadata.dev(), metadata.ino());
        let scan = Mutex::new(Scan { next: Instant::now(), held: Vec::new() });
        Ok(Self { is_named: metadata.nlink() > 0, identity, file, own, mounts, scan })
    }

    /// Asks for the lock.
    pub(super) fn lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    /// Gives the lock back.
    pub(super) fn unlock(&self) {
        // Removed with the last descriptor if not now.
        let _ = self.file.unlock();
    }

    /// A second user of the file, or that it has lost its name.
    pub(super) fn intruder(&self) -> Option<Holder> {
        if self.is_named && self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
            return Some(Holder::Nameless);
        }
        let is_told = self.mounts_changed();
        // A panic with the lock leaves nothing changed by half.
        let mut scan = self.scan.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        if !is_told && start < scan.next {
            return None;
        }
        let holder = self.look(&mut scan);
        let end = Instant::now();
        scan.next = end + (end - start) * SHARE;
        holder
    }

    /// Whether something was mounted or unmounted since the last call.
    fn mounts_changed(&self) -> bool {
        let Some(mounts) = &self.mounts else { return false };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut list = [PollFd::new(mounts, PollFlags::PRI)];
        let told = poll(&mut list, Some(&now));
        told.is_ok() && list[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }

    fn look(&self, scan: &mut Scan) -> Option<Holder> {
        let devices = loops::over(self.identity);
        if devices.is_empty() {
            scan.held.clear();
            return None;
        }
        let mounts = mounts::read().unwrap_or_default();
        if let Some(at) = devices.iter().find_map(|device| mounts::of_disk(device.number, &mounts))
        {
            return Some(Holder::Mount(at));
        }
        scan.held.retain(|(number, _)| devices.iter().any(|device| device.number == *number));
        for device in &devices {
            let is_held = scan.held.iter().any(|(number, _)| *number == device.number);
            if Some(device.number) == self.own || is_held {
                continue;
            }
            match hold(device) {
                Ok(held) => scan.held.push((device.number, held)),
                Err(holder) => return Some(holder),
            }
        }
        None
    }
}
