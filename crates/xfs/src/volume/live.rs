//! A volume that is changed through its journal: its requirements, and the start of the journal.

use super::{Access, Volume};
use crate::cache::{BufferAddress, BufferRef, MetaBuffer};
use crate::error::Error;
use crate::format::{BufferKind, Features2};
use crate::inode::{DirtyFiles, cluster_unit};
use crate::log::{Journal, JournalParts, JournalStart, LogArea, LogEnds, LogShape, LogSpace};
use crate::units::Lsn;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use undercroft_block::{Sector, read_exact_at};

/// How a volume is opened for changes.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Size of the buffers in which records of the journal are assembled, in bytes: the next power of
    /// two from 32 KiB, which suits the kernel best (it loses records when the size changes between a
    /// crash and the next mount), to 256 KiB, or the stripe unit of the journal if that is more.
    pub record_bytes: u32,
    /// Bytes of files that may be newer in memory than on the device. Writers of more wait.
    pub dirty_bytes: u64,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { record_bytes: 32 << 10, dirty_bytes: 64 << 20 }
    }
}

impl Volume {
    /// Refuses a volume that this version cannot change without losing something.
    pub(crate) fn check_maintained(&self) -> Result<(), Error> {
        self.check_format_maintained()?;
        if self.cache.device().is_read_only() {
            return Err(Error::ReadOnly("the device is read-only".into()));
        }
        Ok(())
    }

    /// As [`check_maintained`](Self::check_maintained), on any device.
    pub(crate) fn check_format_maintained(&self) -> Result<(), Error> {
        check(self)
    }

    /// Starts the journal of a volume that has nothing to replay, and whose journal has these ends.
    pub(crate) fn into_live(
        mut self,
        ends: &LogEnds,
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        if let Some(head) = ends.head
            && let Some(area) = LogArea::new(self.cache.device(), &self.geometry)
        {
            // Ahead of the first flush of the journal.
            area.clear_stale(head, ends.tail, self.geometry.uuid)?;
        }
        // The record before it was not looked for.
        let start = JournalStart { position: ends.next(), previous_block: u32::MAX, pinned: None };
        self.start_journal(&start, options)?;
        Ok(self)
    }

    /// Starts the journal of a volume on which all was replayed but the work of intents, so that
    /// this can be done. Recovery starts at `pinned`, if anywhere, until
    /// [`unpin_log`](Self::unpin_log).
    pub(crate) fn into_replayed(
        mut self,
        ends: &LogEnds,
        pinned: Option<Lsn>,
    ) -> Result<Self, Error> {
        let position = ends.next();
        let (previous_block, record_bytes) = ends.last.unwrap_or((u32::MAX, 0));
        let start = JournalStart { position, previous_block, pinned };
        self.start_journal(&start, &LiveOptions { record_bytes, ..LiveOptions::default() })?;
        Ok(self)
    }

    /// The intents that the journal held when it was opened are done and durable.
    pub(crate) fn unpin_log(&self) {
        self.journal.iter().for_each(|journal| journal.unpin());
    }

    /// Bytes of the journal that the next transaction can have at once.
    pub(crate) fn log_room(&self) -> usize {
        self.journal.as_ref().map_or(usize::MAX, |journal| journal.room_now())
    }

    fn start_journal(&mut self, start: &JournalStart, options: &LiveOptions) -> Result<(), Error> {
        let sector_bytes = 1 << self.superblock.log_sector_log;
        let parts = JournalParts {
            cache: Arc::clone(&self.cache),
            geometry: Arc::clone(&self.geometry),
            shape: LogShape::new(&self.geometry, sector_bytes, options.record_bytes),
            poison: Arc::clone(&self.poison),
            open_sequence: Arc::clone(&self.open_checkpoint),
            busy: self.groups.iter().map(|group| Arc::clone(&group.busy)).collect(),
            superblock: superblock_buffer(self)?,
        };
        self.log_space = LogSpace::new(&self.geometry, parts.shape.checkpoint_limit());
        self.journal = Some(Journal::start(parts, start)?);
        self.files = DirtyFiles::new(options.dirty_bytes);
        // Grows over the life of a volume, so no generation comes again.
        self.generations = AtomicU64::new(start.position.0);
        self.access = Access::Live;
        Ok(())
    }
}

/// Refuses volumes that this version cannot change without losing something.
fn check(volume: &Volume) -> Result<(), Error> {
    let (superblock, geometry) = (volume.superblock(), volume.geometry());
    let features = &geometry.features;
    let unknown = features.unknown_ro_compat;
    let lazy = features.features2.contains(Features2::LAZYSBCOUNT);
    let refused = [
        (!features.crc, "it has version 4 of the format, which can only be read"),
        (superblock.needs_repair(), "it needs `xfs_repair` first"),
        (geometry.log_start.is_null(), "its journal is on another device"),
        (superblock.rt_blocks > 0, "it has a realtime device, which is not maintained"),
        (features.metadir(), "it has a metadata directory, which is not maintained"),
        (features.zoned(), "it is zoned, which is not maintained"),
        (features.ascii_ci(), "its names ignore case, which is not maintained"),
        (!lazy, "its counters are not lazy, as version 5 of the format asks for"),
        (
            cluster_unit(geometry) != geometry.cluster_blocks(),
            "its inode chunks are not aligned to clusters, as the journal needs",
        ),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(refused, _)| *refused) {
        return Err(Error::ReadOnly(what.into()));
    }
    let journal = features.unknown_log_incompat();
    if journal != 0 {
        let what = format!("its journal has features {journal:#x} that this version does not know");
        return Err(Error::ReadOnly(what));
    }
    if unknown != 0 {
        let what = format!("it uses features {unknown:#x} that this version can only read");
        return Err(Error::ReadOnly(what));
    }
    Ok(())
}

/// The buffer of the primary superblock, which was verified when the volume was opened.
fn superblock_buffer(volume: &Volume) -> Result<BufferRef, Error> {
    let mut bytes = vec![0; volume.geometry().sector_size()];
    read_exact_at(volume.cache().device().as_ref(), Sector(0), &mut bytes)?;
    let address = BufferAddress::contiguous(Sector(0), (bytes.len() / 512) as u32);
    let buffer = MetaBuffer::new(address, BufferKind::Superblock, bytes);
    volume.cache().admit(&buffer);
    Ok(buffer)
}
