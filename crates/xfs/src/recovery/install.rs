//! Blocks given new contents through the journal: all of them, or none.
//!
//! They are one transaction of the journal, which declares everything before it done, and recovery brings
//! them to their places. A cut before its last record leaves the volume as it was; behind it, any
//! recovery, a kernel's too, completes it.

use super::{ReplayTarget, recover_between, write_unmount_record};
use crate::bytes::put_be64;
use crate::error::Error;
use crate::format::log_record::LOG_BLOCK;
use crate::format::{
    BufferItem, BufferItemType, BufferKind, Header, INODE_LSN_OFFSET, LogRecordHeader, Superblock,
    stamp_inode_crc,
};
use crate::geometry::Geometry;
use crate::log::{LogArea, LogEnds, LogShape, LogState, RecordStream, Seal};
use crate::units::Lsn;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved, Sector, flush};

/// Where the journal of a volume goes on: nothing on the volume may carry a later position.
///
/// # Errors
/// The journal is damaged, or on another device; the device failed.
pub fn journal_position(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
) -> Result<Lsn, Error> {
    let geometry = superblock.geometry();
    let Some(area) = LogArea::new(device, &geometry) else {
        return Err(Error::NotUsable("its journal is on another device".into()));
    };
    Ok(area.ends(&geometry)?.next())
}

/// Makes the journal of a volume an empty one that begins with a cycle: 1 for one that was never used, later
/// ones where metadata says that it was written in an earlier one. What was in it is lost.
///
/// # Errors
/// The journal is on another device; the device failed, or is open for change.
pub fn renew_journal(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    cycle: u32,
) -> Result<(), Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    renew(device, superblock, cycle).map(drop)
}

/// Makes the journal an empty one; returns its ends.
pub(super) fn renew(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    cycle: u32,
) -> Result<LogEnds, Error> {
    let geometry = superblock.geometry();
    let Some(area) = LogArea::new(device, &geometry) else {
        return Err(Error::NotUsable("its journal is on another device".into()));
    };
    let head = Lsn::new(cycle, 0);
    let mut piece = Vec::new();
    for first in (0..area.blocks).step_by(RENEWED as usize) {
        let count = RENEWED.min(area.blocks - first);
        piece.clear();
        piece.resize(count as usize * LOG_BLOCK, 0);
        // A journal that was never used is all zeroes.
        if cycle > 1 {
            for (block, at) in piece.chunks_exact_mut(LOG_BLOCK).zip(first..) {
                let lsn = Lsn::new(cycle - 1, at as u32);
                let header = LogRecordHeader::new(geometry.uuid, lsn, head, 0);
                LogRecordHeader { buffer_bytes: 0, ..header }.encode(block);
            }
        }
        area.write(first, &piece)?;
    }
    flush(device.as_ref())?;
    let ends = LogEnds { head: Some(head), tail: head, ..LogEnds::default() };
    let ends = write_unmount_record(device, superblock, &ends, geometry.uuid)?;
    flush(device.as_ref())?;
    Ok(ends)
}

/// Log blocks that are written at once.
const RENEWED: u64 = 2048;

/// The number of the transaction, as good as any.
const TRANSACTION: u32 = 1;

/// Records are assembled in buffers of this size.
const BUFFER: u32 = 256 << 10;

/// A block, or the header of a group, as it is to be: with its checksum.
#[derive(Clone, Debug)]
pub struct BlockImage {
    /// Where it begins.
    pub sector: Sector,
    /// Its kind; `None` for contents that say nothing of themselves.
    pub kind: Option<BufferKind>,
    /// Whole sectors, 64 KiB at most.
    pub bytes: Vec<u8>,
}

impl BlockImage {
    /// The bytes, with a position in the journal and the checksums that follow from it.
    pub(super) fn stamped(&self, lsn: Lsn, geometry: &Geometry) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        match self.kind {
            Some(BufferKind::InodeCluster) => {
                for inode in bytes.chunks_exact_mut(geometry.inode_size()) {
                    put_be64(inode, INODE_LSN_OFFSET, lsn.0);
                    stamp_inode_crc(inode);
                }
            }
            Some(kind) => {
                if let Some(header) = Header::of(kind) {
                    header.stamp(&mut bytes, lsn, geometry.block_size());
                }
            }
            None => {}
        }
        bytes
    }
}

/// Bytes of the journal that images of so many bytes each take.
#[must_use]
pub fn images_size(superblock: &Superblock, images: impl Iterator<Item = usize>) -> usize {
    shape(superblock).checkpoint_bytes(images.map(|bytes| bytes + 128).sum())
}

fn shape(superblock: &Superblock) -> LogShape {
    LogShape::new(&superblock.geometry(), 1 << superblock.log_sector_log, BUFFER)
}

/// Gives blocks of a volume new contents, all or none, and drops everything else that its journal
/// holds. `superblock` is the one that the volume is to have, also if that on the device is damaged.
///
/// # Errors
/// The journal is damaged, on another device, or too short for so much: nothing was changed then. The device
/// failed; it is open for change.
pub fn install(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    images: &[BlockImage],
) -> Result<(), Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let geometry = superblock.geometry();
    let Some(area) = LogArea::new(device, &geometry) else {
        return Err(Error::NotUsable("its journal is on another device".into()));
    };
    let ends = area.ends(&geometry)?;
    check_length(superblock, images)?;
    let ends = log_images(device, superblock, &ends, images)?;
    recover_between(ReplayTarget::Device, device, superblock, &ends, &mut |_| {}).map(drop)
}

/// Refuses images that the journal has no room for.
pub(super) fn check_length(superblock: &Superblock, images: &[BlockImage]) -> Result<(), Error> {
    let shape = shape(superblock);
    let bytes = images_size(superblock, images.iter().map(|image| image.bytes.len()));
    if bytes + 2 * shape.slack_bytes() > shape.bytes() {
        let what = "its journal is too short for so many changes at once";
        return Err(Error::NotUsable(what.into()));
    }
    Ok(())
}

/// Writes a transaction of images to a journal with these ends, durably, which declares everything before it done;
/// returns the ends behind it.
pub(super) fn log_images(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    ends: &LogEnds,
    images: &[BlockImage],
) -> Result<LogEnds, Error> {
    let geometry = superblock.geometry();
    let Some(area) = LogArea::new(device, &geometry) else { return Ok(ends.clone()) };
    let shape = shape(superblock);
    let head = ends.next();
    let (previous_block, _) = ends.last.unwrap_or((u32::MAX, BUFFER));
    let sealed = stream(shape, images, head, &geometry).seal(&Seal {
        uuid: geometry.uuid,
        position: head,
        tail: head,
        previous_block,
    });
    area.clear_stale(head, head, geometry.uuid)?;
    flush(device.as_ref())?;
    area.write(head.block().into(), &sealed.bytes)?;
    flush(device.as_ref())?;
    Ok(LogEnds {
        state: LogState::Dirty,
        head: Some(sealed.end),
        tail: head,
        uuid: Some(geometry.uuid),
        last: Some((sealed.last_block, shape.buffer_bytes)),
        torn: None,
        contradiction: None,
    })
}

fn stream(shape: LogShape, images: &[BlockImage], lsn: Lsn, geometry: &Geometry) -> RecordStream {
    let bytes = images.iter().map(|image| image.bytes.len() + 128).sum();
    let mut stream = RecordStream::new(shape, TRANSACTION, Vec::new(), bytes);
    let mut region = Vec::new();
    for image in images {
        let bytes = image.stamped(lsn, geometry);
        let kind = image.kind.map_or(BufferItemType::Unknown, BufferItemType::of);
        let sectors = (image.bytes.len() / 512) as u16;
        let mut item = BufferItem::new(image.sector, sectors, kind);
        item.mark(0..image.bytes.len());
        region.clear();
        item.encode(&mut region);
        stream.region(&region);
        item.runs().for_each(|run| stream.region(&bytes[run]));
    }
    stream.finish();
    stream
}
