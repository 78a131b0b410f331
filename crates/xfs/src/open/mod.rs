//! Opening of volumes: for reading, for changes through the journal, and past it.

mod quota;

use crate::error::Error;
use crate::file::free_orphans;
use crate::log::{self, LogState};
use crate::recovery::{Leftovers, ReplayTarget, recover_between};
use crate::volume::{Copies, CopiesState, LiveOptions, Volume, finish_interrupted, write_copies};
use std::sync::Arc;
use undercroft_block::stack::Overlay;
use undercroft_block::{BlockDevice, Plug, Reserved};

impl Volume {
    /// Opens the file system that starts at sector 0 of `device`, for reading.
    ///
    /// If it was not unmounted, its journal is replayed in memory: the volume is seen with its
    /// latest changes, and nothing is written. [`recovery`](Self::recovery) tells the result. A shrink
    /// that was cut between two superblocks is finished in memory, too.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, a journal that cannot be
    /// replayed ([`Error::Journal`]), or the device failed.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let volume = match Self::open_unreplayed(Arc::clone(&device)) {
            Ok(volume) => volume,
            Err(error) => Self::finished_in_memory(device, error)?,
        };
        // Those who read files need no headers of groups.
        volume.prefetch_inodes([volume.geometry().root_inode]);
        let device = Arc::clone(volume.cache().device());
        let ends = log::ends(&device, volume.geometry())?;
        if ends.state != LogState::Dirty {
            return Ok(volume);
        }
        let finished_in_memory = volume.is_finished_in_memory();
        let device: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device));
        let (place, superblock) = (ReplayTarget::Memory, volume.superblock());
        let recovery = recover_between(place, &device, superblock, &ends, &mut |_| {})?;
        let mut volume = Self::open_unreplayed(device)?;
        volume.set_recovery(recovery);
        if finished_in_memory {
            volume.set_finished_in_memory();
        }
        Ok(volume)
    }

    /// A volume that a change which was cut keeps from being opened, with that finished in memory.
    fn finished_in_memory(device: Arc<dyn BlockDevice>, error: Error) -> Result<Self, Error> {
        let memory: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device));
        finish_interrupted(&memory, error)?;
        let mut volume = Self::open_unreplayed(memory)?;
        volume.set_finished_in_memory();
        Ok(volume)
    }

    /// Opens a volume for changes through its journal, by one writer at a time: the device is
    /// [reserved](Reserved) until the volume is closed, or the last owner of it has dropped it. From
    /// other programs a [`FileDevice`](undercroft_block::FileDevice) keeps its file or disk, and the
    /// volume asks it again ahead of each write of the journal.
    ///
    /// Transactions are atomic, and durable once [`sync`](Self::sync) or a [ticket](Self::force)
    /// says so. [`close`](Self::close) leaves the volume as an unmount does; a volume that is
    /// dropped without it is left as a crash leaves it, and replayed when it is opened next.
    ///
    /// If it was not unmounted, its journal is replayed first. What a change of its size, label or
    /// UUID left that was cut is completed.
    ///
    /// # Errors
    /// As for [`open`](Self::open); the device is open for change; or the volume has a feature that
    /// is known for reading only, which is named.
    pub fn open_live(device: Arc<dyn BlockDevice>, options: &LiveOptions) -> Result<Self, Error> {
        Self::open_reserved(Reserved::new(device)?, options)
    }

    /// As [`open_live`](Self::open_live), on a device that the caller has reserved.
    ///
    /// # Errors
    /// As for [`open_live`](Self::open_live).
    pub fn open_reserved(device: Reserved, options: &LiveOptions) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(Arc::clone(&device)).or_else(|error| {
            finish_interrupted(&device, error)?;
            Self::open_unreplayed(Arc::clone(&device))
        })?;
        volume.check_maintained()?;
        // The copies of the superblock come with the headers beside them, while the journal is looked
        // at.
        let together = Plug::new(&device);
        let mut copies = Copies::begin(&device, volume.superblock());
        volume.prefetch_headers();
        drop(together);
        let mut ends = log::ends(volume.cache().device(), volume.geometry())?;
        let (place, superblock) = (ReplayTarget::Device, volume.superblock());
        if let Some(recovery) = recover_between(place, &device, superblock, &ends, &mut |_| {})? {
            // The superblock, and sizes, may have changed.
            volume = Self::open_unreplayed(Arc::clone(&device))?;
            volume.set_recovery(Some(recovery));
            copies = Copies::begin(volume.cache().device(), volume.superblock());
            ends = log::ends(volume.cache().device(), volume.geometry())?;
        }
        ends.check_believable(volume.superblock())?;
        let mut volume = volume.into_live(&ends, options)?;
        volume.hold(device);
        if volume.counted_quotas() {
            quota::switch_quotas_off(&volume)?;
        }
        let state = copies.state();
        if state == CopiesState::JournalMoving {
            Leftovers::of(&volume)?.free(&volume)?;
            volume.sync()?;
        }
        if state != CopiesState::Current {
            write_copies(volume.cache().device().as_ref(), volume.superblock())?;
        }
        // Files that the last user of the volume left without a name are not open.
        free_orphans(&volume)?;
        Ok(volume)
    }

    /// Opens a volume that no other program uses, for changes that skip the journal.
    ///
    /// The changes are on the device once [`mkfs::finish`](crate::mkfs::finish) has returned. An
    /// interruption before leaves a damaged volume: this is for copies, to prepare or to study
    /// them.
    ///
    /// # Errors
    /// As for [`open`](Self::open); the device is open for change; or the journal is not empty.
    pub fn open_bulk(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let device = Reserved::new(device)?;
        let mut volume = Self::open_unreplayed(Arc::clone(&device))?;
        if volume.log_state()? != LogState::Clean {
            let what = "its journal is not empty; mount and unmount it first";
            return Err(Error::NotUsable(what.into()));
        }
        volume.set_bulk();
        volume.hold(device);
        Ok(volume)
    }

    /// Looks whether the journal on the disk holds something to replay, also if that was done in
    /// memory when the volume was opened.
    ///
    /// # Errors
    /// The device failed, or no record can be found.
    pub fn log_state(&self) -> Result<LogState, Error> {
        if self.is_replayed_in_memory() {
            return Ok(LogState::Dirty);
        }
        Ok(log::ends(self.cache().device(), self.geometry())?.state)
    }
}
