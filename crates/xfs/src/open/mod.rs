//! Opening of volumes: for reading, for changes through the journal, and past it.

mod quota;

use crate::error::Error;
use crate::file::free_orphans;
use crate::log::{self, LogState};
use crate::recovery::{ReplayTarget, recover_between};
use crate::volume::{LiveOptions, Volume, complete_copies};
use std::sync::Arc;
use undercroft_block::BlockDevice;
use undercroft_block::stack::Overlay;

impl Volume {
    /// Opens the file system that starts at sector 0 of `device`, for reading.
    ///
    /// If it was not unmounted, its journal is replayed in memory: the volume is seen with its
    /// latest changes, and nothing is written. [`recovery`](Self::recovery) tells the result.
    ///
    /// # Errors
    /// No XFS superblock, features that this version does not know, a journal that cannot be
    /// replayed ([`Error::Journal`]), or the device failed.
    pub fn open(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let volume = Self::open_unreplayed(Arc::clone(&device))?;
        volume.prefetch_headers();
        let ends = log::ends(&device, volume.geometry())?;
        if ends.state != LogState::Dirty {
            return Ok(volume);
        }
        let device: Arc<dyn BlockDevice> = Arc::new(Overlay::new(device));
        let (place, superblock) = (ReplayTarget::Memory, volume.superblock());
        let recovery = recover_between(place, &device, superblock, &ends, &mut |_| {})?;
        let mut volume = Self::open_unreplayed(device)?;
        volume.set_recovery(recovery);
        Ok(volume)
    }

    /// Opens a volume for changes through its journal, by one writer at a time. Of a file or disk a
    /// [`FileDevice`](undercroft_block::FileDevice) sees to that, in this program and in others, and
    /// the volume asks it again ahead of each write of the journal; of two volumes on one device in
    /// memory the caller does.
    ///
    /// Transactions are atomic, and durable once [`sync`](Self::sync) or a [ticket](Self::force)
    /// says so. [`close`](Self::close) leaves the volume as an unmount does; a volume that is
    /// dropped without it is left as a crash leaves it, and replayed when it is opened next.
    ///
    /// If it was not unmounted, its journal is replayed first.
    ///
    /// # Errors
    /// As for [`open`](Self::open); or the volume has a feature that is known for reading only,
    /// which is named.
    pub fn open_live(device: Arc<dyn BlockDevice>, options: &LiveOptions) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(Arc::clone(&device))?;
        volume.check_maintained()?;
        volume.prefetch_headers();
        let mut ends = log::ends(volume.cache().device(), volume.geometry())?;
        let (place, superblock) = (ReplayTarget::Device, volume.superblock());
        if let Some(recovery) = recover_between(place, &device, superblock, &ends, &mut |_| {})? {
            // The superblock, and sizes, may have changed.
            volume = Self::open_unreplayed(device)?;
            volume.set_recovery(Some(recovery));
            ends = log::ends(volume.cache().device(), volume.geometry())?;
        }
        ends.check_believable(volume.superblock())?;
        let volume = volume.into_live(&ends, options)?;
        if volume.counted_quotas() {
            quota::switch_quotas_off(&volume)?;
        }
        complete_copies(volume.cache().device(), volume.superblock())?;
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
    /// As for [`open`](Self::open); or the journal is not empty.
    pub fn open_bulk(device: Arc<dyn BlockDevice>) -> Result<Self, Error> {
        let mut volume = Self::open_unreplayed(device)?;
        if volume.log_state()? != LogState::Clean {
            let what = "its journal is not empty; mount and unmount it first";
            return Err(Error::NotUsable(what.into()));
        }
        volume.set_bulk();
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
