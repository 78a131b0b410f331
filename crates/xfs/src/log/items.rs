//! Log items straight from the buffers they describe (docs/format/journal/items.md).
//!
//! Inodes are never logged as parts of their cluster: each goes as core and forks.

use super::buffer_key::BufferKey;
use super::records::RecordStream;
use crate::bytes::{CHANGE_UNIT, Changes, be16, be32, be64, put_be64};
use crate::cache::{BufferAddress, Content};
use crate::error::Error;
use crate::format::{
    BmapRoot, BufferItem, BufferItemFlags, BufferItemType, BufferKind, ForkFormat,
    INODE_LSN_OFFSET, InodeCore, InodeItem, InodeItemFields, LOG_CORE_LEN, OperationHeader,
    core_to_log, root_to_log,
};
use crate::geometry::Geometry;
use crate::units::{InodeNumber, Lsn};
use std::borrow::Cow;
use undercroft_block::Sector;

/// Bytes of the first region of a buffer's item, without its map.
const BUFFER_ITEM: usize = 20;

/// The most bytes that the items of a buffer take now, with the headers of their operations.
pub(super) fn bound(content: &Content, geometry: &Geometry) -> usize {
    if content.kind != BufferKind::InodeCluster {
        return changed_bound(content.bytes.len(), &to_log(content));
    }
    let inodes = changed_inodes(&content.changes, geometry).count();
    let inode = 4 * OperationHeader::LEN + InodeItem::LEN + geometry.inode_size() + 8;
    inodes * inode + changed_bound(content.bytes.len(), &content.log.pointers)
}

/// Bytes that a freed buffer of `sectors` sectors takes.
pub(super) const fn cancel_bound(sectors: u32) -> usize {
    OperationHeader::LEN + BUFFER_ITEM + map_bytes(sectors as usize * 512)
}

const fn map_bytes(len: usize) -> usize {
    len.div_ceil(CHANGE_UNIT).div_ceil(32) * 4
}

fn changed_bound(len: usize, changes: &Changes) -> usize {
    if changes.is_empty() {
        return 0;
    }
    let data: usize = changes.ranges().map(|range| range.len() + OperationHeader::LEN).sum();
    OperationHeader::LEN + BUFFER_ITEM + map_bytes(len) + data
}

/// Everything in a buffer that may not be in its place: an item must hold all of it, because older
/// ones may fall off the journal once it is written.
fn to_log(content: &Content) -> Cow<'_, Changes> {
    if content.log.in_flight.is_empty() {
        return Cow::Borrowed(&content.changes);
    }
    let mut changes = content.changes.clone();
    changes.merge(&content.log.in_flight);
    Cow::Owned(changes)
}

/// Numbers inside a cluster of the inodes that were changed, ascending.
fn changed_inodes<'c>(
    changes: &'c Changes,
    geometry: &Geometry,
) -> impl Iterator<Item = usize> + 'c {
    let size_log = geometry.inode_log;
    let mut next = 0;
    changes.ranges().flat_map(move |range| {
        let first = (range.start >> size_log).max(next);
        next = ((range.end - 1) >> size_log) + 1;
        first..next
    })
}

/// The removal of an inode whose cluster is freed in the same checkpoint. No replay needs it, and all pass over
/// it; a kernel logs it, too, and it tells when the file was removed (docs/format/removed-files.md#the-journal).
#[derive(Debug)]
pub(crate) struct Removal {
    pub(super) cluster: BufferKey,
    /// Item and core.
    pub(super) regions: [Vec<u8>; 2],
}

impl Removal {
    /// Bytes in a checkpoint.
    pub(super) const BYTES: usize = 2 * OperationHeader::LEN + InodeItem::LEN + LOG_CORE_LEN;
}

/// The inodes that were removed since the cluster was logged last.
pub(crate) fn removals(
    address: &BufferAddress,
    content: &Content,
    geometry: &Geometry,
) -> Vec<Removal> {
    let &[cluster] = address.parts() else { return Vec::new() };
    if content.kind != BufferKind::InodeCluster {
        return Vec::new();
    }
    let size = geometry.inode_size();
    changed_inodes(&content.changes, geometry)
        .filter_map(|index| {
            let inode = content.bytes.get(index * size..(index + 1) * size)?;
            let core = InodeCore::decode(inode, geometry).ok()?;
            let item = InodeItem {
                fields: InodeItemFields::CORE,
                attr_len: 0,
                data_len: 0,
                inode: core.number,
                device: 0,
                cluster: cluster.0,
                cluster_sectors: cluster.1,
                // Less than 64 KiB.
                offset: (index * size) as u32,
            };
            let mut region = Vec::with_capacity(InodeItem::LEN);
            item.encode(&mut region);
            let regions = [region, core_to_log(inode).to_vec()];
            (core.mode == 0).then_some(Removal { cluster, regions })
        })
        .collect()
}

/// Writes log items into a stream of records.
pub(super) struct ItemWriter<'w> {
    pub(super) stream: &'w mut RecordStream,
    pub(super) geometry: &'w Geometry,
    /// Start of the checkpoint, which is stamped into buffers.
    pub(super) lsn: Lsn,
    /// Memory of a region.
    pub(super) region: Vec<u8>,
}

impl ItemWriter<'_> {
    /// Logs a buffer of the checkpoint and says that its changes are in the journal.
    pub(super) fn buffer(
        &mut self,
        address: &BufferAddress,
        content: &mut Content,
    ) -> Result<(), Error> {
        // Operations neither make nor change one of several parts (`bmap::ForkWriter`).
        let &[(sector, sectors)] = address.parts() else {
            return Err(Error::Block {
                structure: content.kind.name(),
                sector: address.first(),
                what: "it is scattered, which no kernel replays".into(),
            });
        };
        content.log.lsn = self.lsn;
        content.log.bytes = 0;
        if content.kind == BufferKind::InodeCluster {
            return self.cluster(sector, sectors, content);
        }
        let changes = to_log(content);
        if !changes.is_empty() {
            let buffer_type = BufferItemType::of(content.kind);
            self.parts(sector, &content.bytes, &changes, buffer_type, BufferItemFlags::empty());
        }
        Ok(())
    }

    /// Logs the changed inodes of a cluster. An inode logged before stays at its place in the
    /// journal, which the position of the cluster in the list of dirty buffers respects.
    fn cluster(
        &mut self,
        sector: Sector,
        sectors: u32,
        content: &mut Content,
    ) -> Result<(), Error> {
        let size = self.geometry.inode_size();
        for index in changed_inodes(&content.changes, self.geometry) {
            let offset = index * size;
            let inode = &mut content.bytes[offset..offset + size];
            put_be64(inode, INODE_LSN_OFFSET, self.lsn.0);
            self.inode(sector, sectors, offset, inode)?;
        }
        if !content.log.pointers.is_empty() {
            let (flags, kind) = (BufferItemFlags::UNLINKED_POINTERS, BufferItemType::Inodes);
            self.parts(sector, &content.bytes, &content.log.pointers, kind, flags);
        }
        content.changes.clear();
        content.log.pointers.clear();
        content.log.created = false;
        Ok(())
    }

    fn parts(
        &mut self,
        sector: Sector,
        bytes: &[u8],
        changes: &Changes,
        buffer_type: BufferItemType,
        flags: BufferItemFlags,
    ) {
        // At most 64 KiB.
        let mut item = BufferItem::new(sector, (bytes.len() / 512) as u16, buffer_type);
        item.flags = flags;
        changes.ranges().for_each(|range| item.mark(range));
        self.region.clear();
        item.encode(&mut self.region);
        self.stream.region(&self.region);
        item.runs().for_each(|run| self.stream.region(&bytes[run]));
    }

    /// Logs that a buffer was freed.
    pub(super) fn cancel(&mut self, sector: Sector, sectors: u32) {
        self.region.clear();
        BufferItem::cancel(sector, sectors as u16).encode(&mut self.region);
        self.stream.region(&self.region);
    }

    fn inode(
        &mut self,
        cluster: Sector,
        cluster_sectors: u32,
        offset: usize,
        inode: &[u8],
    ) -> Result<(), Error> {
        let number = InodeNumber(be64(inode, 152));
        let damaged = |what: String| Error::Inode { inode: number, what };
        let core = InodeCore::decode(inode, self.geometry).map_err(damaged)?;
        let mut item = InodeItem {
            fields: InodeItemFields::CORE,
            attr_len: 0,
            data_len: 0,
            inode: number,
            device: 0,
            cluster,
            cluster_sectors,
            // Less than 64 KiB.
            offset: offset as u32,
        };
        let fork = &inode[core.data_fork(self.geometry)];
        if core.data_format == ForkFormat::Dev {
            item.fields |= InodeItemFields::DEVICE;
            item.device = be32(fork, 0);
        }
        let data = self.fork(&core, core.data_format, core.data_extents, core.size, fork);
        let data = data.map_err(damaged)?;
        let mut attr = Cow::Borrowed(&[][..]);
        if core.forkoff > 0 {
            let fork = &inode[core.attr_fork(self.geometry)];
            let used = be16(fork, 0).into();
            attr = self
                .fork(&core, core.attr_format, core.attr_extents.into(), used, fork)
                .map_err(damaged)?;
        }
        // Forks are shorter than inodes.
        (item.data_len, item.attr_len) = (data.len() as u16, attr.len() as u16);
        if !data.is_empty() {
            item.fields |= match core.data_format {
                ForkFormat::Local => InodeItemFields::DATA_LOCAL,
                ForkFormat::Btree => InodeItemFields::DATA_ROOT,
                _ => InodeItemFields::DATA_EXTENTS,
            };
        }
        if !attr.is_empty() {
            item.fields |= match core.attr_format {
                ForkFormat::Local => InodeItemFields::ATTR_LOCAL,
                ForkFormat::Btree => InodeItemFields::ATTR_ROOT,
                _ => InodeItemFields::ATTR_EXTENTS,
            };
        }
        self.region.clear();
        item.encode(&mut self.region);
        self.stream.region(&self.region);
        let core: [u8; LOG_CORE_LEN] = core_to_log(inode);
        self.stream.region(&core);
        for image in [data, attr] {
            if !image.is_empty() {
                self.region.clear();
                self.region.extend_from_slice(&image);
                self.region.resize(image.len().next_multiple_of(4), 0);
                self.stream.region(&self.region);
            }
        }
        Ok(())
    }

    /// The image of a fork in the log; the error names the defect.
    fn fork<'f>(
        &self,
        core: &InodeCore,
        format: ForkFormat,
        extents: u64,
        local: u64,
        fork: &'f [u8],
    ) -> Result<Cow<'f, [u8]>, String> {
        let used = match format {
            ForkFormat::Dev => 0,
            ForkFormat::Local => usize::try_from(local).unwrap_or(usize::MAX),
            ForkFormat::Extents => {
                usize::try_from(extents).unwrap_or(usize::MAX).saturating_mul(16)
            }
            ForkFormat::Btree => {
                let root = BmapRoot::decode(fork).map_err(|defect| defect.to_string())?;
                return Ok(root_to_log(&root, core.number, &self.geometry.meta_uuid).into());
            }
            ForkFormat::Uuid | ForkFormat::MetaBtree => {
                return Err("its fork has a format that is never logged".into());
            }
        };
        let image = fork.get(..used).ok_or("the content of a fork does not fit it")?;
        Ok(Cow::Borrowed(image))
    }
}
