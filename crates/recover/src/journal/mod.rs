//! The journal as a history: all records that are whole, also those that no replay needs any more.
//!
//! A record is found by its header anywhere in the journal, and ordered by its position in time. A
//! record that was overwritten in part ends what goes on in it.

mod buffers;
mod directories;
mod free;
mod maps;
mod records;

use std::ops::Range;

use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{
    Assembly, BufferItem, BufferItemType, Extent, Geometry, InodeCore, InodeItem, InodeItemFields,
    JournalDefect, LogItemKind, LoggedTransaction, OperationFlags, OperationHeader, core_from_log,
    root_from_log,
};

use crate::directory::OldEntry;
use crate::disk::Disk;
use crate::progress::Progress;
use crate::trail::{InodeCopy, Origin};
use directories::Directories;
use free::FreeTrees;
use maps::Maps;
use records::Record;

/// Bytes of transactions under way that are kept: the largest checkpoints of a kernel are smaller.
const OPEN_BYTES: usize = 256 << 20;

/// The part of time that the journal covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Position of the oldest record.
    pub oldest: Lsn,
    /// Position of the newest.
    pub newest: Lsn,
    /// From here on no record is missing, up to the one that says that the volume was unmounted. `None`
    /// if the newest does not say so.
    pub whole_since: Option<Lsn>,
}

/// What the journal tells of.
pub(crate) enum Told {
    /// A copy of an inode.
    Inode(InodeNumber, InodeCopy),
    /// An entry in a block of a directory, or one that was removed there.
    Entry(OldEntry),
    /// Extents of a file in a block of its map.
    Extents(InodeNumber, Lsn, Vec<Extent>),
    /// Blocks of free extents in records that were logged: of them some were taken or given back.
    Free(Lsn, Vec<Range<u64>>),
    /// The volume was unmounted.
    Unmount(Lsn),
}

/// Reads all of the journal and hands over each copy of an inode in it, in the order of time; and
/// entries of directories, if they are asked for.
pub(crate) fn read(
    disk: &Disk,
    has_entries: bool,
    progress: &mut Progress<'_>,
    mut visit: impl FnMut(Told),
) -> Option<Span> {
    let mut span: Option<Span> = None;
    let mut since = Lsn(0);
    let directories = has_entries.then(Directories::default);
    let mut blocks = Blocks { directories, maps: Maps::default(), free: FreeTrees::default() };
    let mut assembly = Assembly::default();
    records::read(disk, progress, |record| {
        let lsn = record.header.lsn;
        if record.is_behind_a_gap {
            since = lsn;
        }
        let is_unmount = is_unmount(&record);
        if is_unmount {
            visit(Told::Unmount(lsn));
        }
        span = Some(Span {
            oldest: span.map_or(lsn, |span| span.oldest),
            newest: lsn,
            whole_since: is_unmount.then_some(since),
        });
        if record.is_behind_a_gap || assembly.held() > OPEN_BYTES {
            assembly.clear();
        }
        let added = assembly.add(record.header, &record.data, |transaction| {
            items(disk, transaction, &mut blocks, &mut visit);
            Ok::<_, JournalDefect>(())
        });
        if added.is_err() {
            assembly.clear();
        }
    });
    span
}

/// Whether a record says that the volume was unmounted: with its only operation.
fn is_unmount(record: &Record<'_>) -> bool {
    let operation = record.data.get(..OperationHeader::LEN).map(OperationHeader::decode);
    record.header.operations == 1
        && operation.is_some_and(|operation| {
            operation.is_ok_and(|operation| operation.flags.contains(OperationFlags::UNMOUNT))
        })
}

/// Blocks that are logged in parts.
struct Blocks {
    directories: Option<Directories>,
    maps: Maps,
    free: FreeTrees,
}

impl Blocks {
    fn add(&mut self, disk: &Disk, lsn: Lsn, regions: &[&[u8]], visit: &mut impl FnMut(Told)) {
        let geometry = &disk.geometry;
        let Some((first, data)) = regions.split_first() else { return };
        let Ok(item) = BufferItem::decode(first) else { return };
        match item.buffer_type {
            BufferItemType::DirBlock | BufferItemType::DirData => {
                let visit = &mut |entry| visit(Told::Entry(entry));
                if let Some(directories) = &mut self.directories {
                    directories.add(geometry, lsn, (&item, data), visit);
                }
            }
            BufferItemType::Tree => {
                if let Some((file, extents)) = self.maps.add(geometry, (&item, data)) {
                    visit(Told::Extents(file, lsn, extents));
                }
                let free = self.free.add(disk, (&item, data));
                if !free.is_empty() {
                    visit(Told::Free(lsn, free));
                }
            }
            _ => {}
        }
    }
}

/// The items of a transaction, up to one that is damaged.
fn items(
    disk: &Disk,
    transaction: &LoggedTransaction,
    blocks: &mut Blocks,
    visit: &mut impl FnMut(Told),
) {
    let lsn = transaction.lsn;
    for item in transaction.items().map_while(Result::ok) {
        match item.kind {
            LogItemKind::Inode => {
                if let Some((number, copy)) = inode(&disk.geometry, lsn, &item.regions) {
                    visit(Told::Inode(number, copy));
                }
            }
            LogItemKind::Buffer => blocks.add(disk, lsn, &item.regions, visit),
            _ => {}
        }
    }
}

/// The copy of an inode in its item.
fn inode(geometry: &Geometry, lsn: Lsn, regions: &[&[u8]]) -> Option<(InodeNumber, InodeCopy)> {
    let (first, rest) = regions.split_first()?;
    let item = InodeItem::decode(first).ok()?;
    let (core, forks) = rest.split_first()?;
    let mut image = vec![0; geometry.inode_size()];
    core_from_log(core, &mut image).ok()?;
    let mut core = InodeCore::decode(&image, geometry).ok()?;
    if geometry.features.crc && (core.number != item.inode || core.uuid != geometry.meta_uuid) {
        return None;
    }
    core.number = item.inode;
    let mut forks = forks.iter();
    let has_data = item.fields.intersects(InodeItemFields::DATA);
    let data = if has_data { forks.next() } else { None };
    let has_attr = item.fields.intersects(InodeItemFields::ATTR);
    let attr = if has_attr { forks.next() } else { None };
    let data = match data {
        Some(bytes) if item.fields.contains(InodeItemFields::DATA_ROOT) => {
            let mut fork = vec![0; core.data_fork(geometry).len()];
            root_from_log(bytes, &mut fork).is_ok().then(|| fork.into())
        }
        Some(bytes) => Some(bytes[..bytes.len().min(item.data_len.into())].into()),
        None if item.fields.contains(InodeItemFields::DEVICE) => {
            Some(item.device.to_be_bytes().into())
        }
        // A fork without extents is logged without a region.
        None if core.data_extents == 0 && core.size == 0 => Some(Box::default()),
        None => None,
    };
    let is_local = item.fields.contains(InodeItemFields::ATTR_LOCAL);
    let attr = attr.filter(|_| is_local);
    let attr = attr.map(|bytes| bytes[..bytes.len().min(item.attr_len.into())].into());
    Some((item.inode, InodeCopy { lsn, origin: Origin::Journal, core, data, attr }))
}
