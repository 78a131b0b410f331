//! Recovery: what the journal of a volume that was not unmounted holds becomes part of the volume
//! (docs/format/journal/replay.md).
//!
//! [`recover`] makes the volume on a device clean. It first reads all records to be replayed and
//! refuses items that it does not know, before anything is written; an interruption at any point
//! leaves a volume that can be recovered again. A volume that is only read is recovered in memory:
//! the device is then an [overlay](undercroft_block::stack::Overlay), and the device below stays as
//! it is.

mod blocks;
mod cancels;
mod clean;
mod finish;
mod images;
mod inodes;
mod install;
mod intents;
#[cfg(test)]
mod item_tests;
mod leftovers;
mod orphans;
mod owners;
mod pieces;
mod reads;
mod replay;
mod switch;
#[cfg(test)]
mod tests;

pub(crate) use clean::write_unmount_record;
pub(crate) use leftovers::{Leftovers, free_journal_blocks, journal_can_move};
pub(crate) use orphans::free_staging;

use crate::error::Error;
use crate::file::free_orphans;
use crate::format::{Assembly, BufferItem, Intent, LogItemKind, LoggedTransaction, Superblock};
use crate::geometry::Geometry;
use crate::log::{self, Defect, LogArea, LogEnds, Records, Strictness};
pub use crate::log::{LogState, RecoveryReport, Torn};
use crate::units::Lsn;
use crate::volume::{
    Copies, CopiesState, LiveOptions, Volume, finish_interrupted, read_superblock, write_copies,
};
use cancels::Cancels;
pub use install::{BlockImage, images_size, install, journal_position, renew_journal};
use reads::Wanted;
use replay::Replay;
use std::sync::Arc;
pub use switch::{NewVolume, switch_volume};
use undercroft_block::{BlockDevice, Reserved, flush};

/// How far recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryProgress {
    /// Of `total` log blocks, `done` have been read and checked.
    Checking {
        /// Log blocks so far.
        done: u64,
        /// Log blocks of all records.
        total: u64,
    },
    /// Of `total` log blocks, `done` have been replayed.
    Replaying {
        /// Log blocks so far.
        done: u64,
        /// Log blocks of all records.
        total: u64,
    },
}

/// Where the changes of recovery go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayTarget {
    /// To the volume itself: every step leaves it recoverable.
    Device,
    /// To memory that no other program sees.
    Memory,
}

/// Makes the volume on `device` clean by its journal; `None` if it was clean. What a change of its
/// size, label or UUID left that was cut is completed either way.
///
/// # Errors
/// The device is open for change; there is no usable volume; the journal is on another device or
/// damaged; it holds items that this version does not know; or the device failed.
pub fn recover(
    device: &Arc<dyn BlockDevice>,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Option<RecoveryReport>, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let superblock = read_superblock(device).or_else(|error| {
        finish_interrupted(device, error)?;
        read_superblock(device)
    })?;
    let geometry = superblock.geometry();
    let Some(area) = LogArea::new(device, &geometry) else {
        let what = "its journal is on another device, which this version does not read";
        return Err(Error::NotUsable(what.into()));
    };
    let ends = area.ends(&geometry)?;
    ends.check_believable(&superblock)?;
    let place = ReplayTarget::Device;
    let report = recover_between(place, device, &superblock, &ends, progress)?;
    complete_change(device)?;
    Ok(report)
}

/// Completes what a change that was cut left on a volume that is clean.
fn complete_change(device: &Arc<dyn BlockDevice>) -> Result<(), Error> {
    // Replay may have changed the superblock.
    let volume = Volume::open_unreplayed(Arc::clone(device))?;
    if volume.check_maintained().is_err() {
        return Ok(());
    }
    let superblock = volume.superblock().clone();
    let state = Copies::begin(device, &superblock).state();
    if state == CopiesState::JournalMoving {
        let ends = log::ends(device, volume.geometry())?;
        let volume = volume.into_live(&ends, &LiveOptions::default())?;
        Leftovers::of(&volume)?.free(&volume)?;
        volume.close()?;
    }
    if state != CopiesState::Current {
        write_copies(device.as_ref(), &superblock)?;
    }
    Ok(())
}

/// As [`recover`], to the device or to memory, with the facts known of the volume already.
pub(crate) fn recover_between(
    place: ReplayTarget,
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    ends: &LogEnds,
    progress: &mut dyn FnMut(RecoveryProgress),
) -> Result<Option<RecoveryReport>, Error> {
    let geometry = superblock.geometry();
    let Some(head) = ends.head.filter(|_| ends.state == LogState::Dirty) else {
        return Ok(None);
    };
    let Some(area) = LogArea::new(device, &geometry) else { return Ok(None) };
    check_gate(superblock, ends)?;
    let tail = area.checked_tail(&geometry, ends)?;
    let mut pass = Pass { area: &area, geometry: &geometry, tail, head };
    let (cancels, wanted) = pass.first(progress)?;
    if place == ReplayTarget::Device {
        area.clear_stale(head, tail, geometry.uuid)?;
        flush(device.as_ref())?;
    }
    let mut replay = Replay::new(Arc::clone(device), geometry.clone(), cancels, wanted);
    let (records, last) = pass.second(&mut replay, progress)?;
    replay.images.write_all(&replay.geometry)?;
    replay.pieces.join(device)?;
    if place == ReplayTarget::Device {
        flush(device.as_ref())?;
    }
    let mut report = RecoveryReport {
        tail,
        head,
        records,
        transactions: replay.transactions,
        items: replay.items,
        blocks: replay.images.written,
        torn: ends.torn.clone(),
        dropped_quotas: replay.dropped_quotas,
        ..RecoveryReport::default()
    };
    let unfinished = replay.intents.into_unfinished();
    let replayed = Volume::open_unreplayed(Arc::clone(device))?;
    replayed.prefetch_headers();
    if unfinished.is_empty() && !orphans::has_any(&replayed)? {
        clean::mark_clean(device, ends, last)?;
    } else {
        complete(place, device, ends, &unfinished, &mut report)?;
    }
    Ok(Some(report))
}

/// Does the work of a volume beyond its logged changes, through its journal.
fn complete(
    place: ReplayTarget,
    device: &Arc<dyn BlockDevice>,
    ends: &LogEnds,
    unfinished: &[(Intent, Lsn)],
    report: &mut RecoveryReport,
) -> Result<(), Error> {
    let pinned = unfinished.first().map(|(_, lsn)| *lsn);
    let volume = Volume::open_unreplayed(Arc::clone(device))?;
    volume.prefetch_headers();
    if place == ReplayTarget::Device {
        volume.check_maintained()?;
    }
    let volume = volume.into_replayed(ends, pinned)?;
    if !unfinished.is_empty() {
        finish::finish(&volume, unfinished)?;
        volume.sync()?;
        volume.unpin_log();
    }
    report.intents = unfinished.len() as u64;
    report.unlinked = free_orphans(&volume)?;
    report.cow_extents = free_staging(&volume)?;
    volume.close()?;
    clean::clear_flags(device.as_ref(), volume.geometry())
}

/// Refuses volumes whose journal is not to be replayed by this version.
fn check_gate(superblock: &Superblock, ends: &LogEnds) -> Result<(), Error> {
    let features = &superblock.features;
    let refused = |what: String| Err(Error::Journal { lsn: ends.next(), what });
    if !features.crc {
        return refused("version 4 volumes are not replayed; mount the volume once".into());
    }
    let unknown = features.unknown_log_incompat();
    if unknown != 0 {
        return refused(format!("sb_features_log_incompat has unknown bits {unknown:#x}"));
    }
    ends.check_believable(superblock)
}

/// The records to replay.
struct Pass<'a> {
    area: &'a LogArea<'a>,
    geometry: &'a Geometry,
    tail: Lsn,
    head: Lsn,
}

impl Pass<'_> {
    /// Hands every committed transaction to `visit`; returns the number of records and the position
    /// of the last.
    fn run(
        &mut self,
        mut visit: impl FnMut(&LoggedTransaction) -> Result<(), Error>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<(u64, Lsn), Error> {
        let (from, to) = (u64::from(self.tail.block()), u64::from(self.head.block()));
        let total = self.area.distance(from, to);
        let mut records = Records::new(self.area, self.geometry, from, to, Strictness::Replay);
        let mut assembly = Assembly::default();
        let (mut count, mut last) = (0, self.tail);
        while let Some(record) = records.next()? {
            let record = record.map_err(Defect::into_error)?;
            assembly.add(&record.at.header, record.data, &mut visit)?;
            count += 1;
            last = record.at.header.lsn;
            let end = self.area.after(record.at.block, record.at.blocks());
            progress(total - self.area.distance(end, to), total);
        }
        Ok((count, last))
    }

    /// First pass: checks that all items are known and whole, and records which buffers are freed
    /// and which are wanted.
    fn first(
        &mut self,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<(Cancels, Wanted), Error> {
        let (mut cancels, mut wanted) = (Cancels::default(), Wanted::default());
        let geometry = self.geometry;
        self.run(
            |transaction| {
                for item in transaction.items() {
                    let item = item?;
                    wanted.note(&item, geometry);
                    if item.kind == LogItemKind::Buffer {
                        let buffer = BufferItem::decode(item.regions[0]);
                        cancels.note(&buffer.map_err(|defect| transaction.damaged(defect))?);
                    }
                }
                Ok(())
            },
            |done, total| progress(RecoveryProgress::Checking { done, total }),
        )?;
        Ok((cancels, wanted))
    }

    /// Second pass: replays everything.
    fn second(
        &mut self,
        replay: &mut Replay,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<(u64, Lsn), Error> {
        self.run(
            |transaction| replay.transaction(transaction),
            |done, total| progress(RecoveryProgress::Replaying { done, total }),
        )
    }
}
