//! Replay of buffers and of new chunks of inodes (docs/format/journal/replay.md).

use super::images::magic;
use super::replay::{Replay, flat};
use crate::bytes::{be32, put_be32};
use crate::cache::{BufferAddress, verify_buffer};
use crate::error::Error;
use crate::format::{
    BufferItem, BufferItemFlags, BufferItemType, InodeCore, InodeCreateItem, LogItem, LogItemKind,
    LoggedTransaction, NEXT_UNLINKED_OFFSET, stamp_inode_crc,
};
use crate::geometry::Geometry;
use crate::units::{AgBlock, InodeNumber};
use undercroft_block::Sector;

/// An item and, if it is a buffer, its first region.
type Block<'b, 't> = (&'b LogItem<'t>, Option<&'b BufferItem>);

/// Copies the parts of the buffer in an item into `bytes`.
fn copy_runs(item: &BufferItem, regions: &[&[u8]], bytes: &mut [u8]) -> Result<(), String> {
    let mut regions = regions.iter().copied();
    for run in item.runs() {
        let Some(target) = bytes.get_mut(run.clone()) else {
            return Err(format!("bytes {run:?} of a buffer of {}", bytes.len()));
        };
        let mut filled = 0;
        // Kernels could cut a run in two where memory pages end.
        while filled < target.len() {
            let source = regions.next().ok_or("a region of data is missing")?;
            let rest = target.len() - filled;
            if source.is_empty() || source.len() > rest {
                return Err(format!("a region of {} bytes for {rest} of a buffer", source.len()));
            }
            target[filled..filled + source.len()].copy_from_slice(source);
            filled += source.len();
        }
    }
    Ok(())
}

impl Replay {
    /// Replays the buffers and new chunks of a transaction.
    pub(super) fn blocks(
        &mut self,
        transaction: &LoggedTransaction,
        blocks: &[Block<'_, '_>],
    ) -> Result<(), Error> {
        let mut rest = blocks;
        while let Some(((item, buffer), others)) = rest.split_first() {
            rest = others;
            match buffer {
                None => self.create(transaction, item)?,
                Some(buffer) => {
                    let parts = self.scattered(buffer, others);
                    let (own, behind) = others.split_at(parts);
                    rest = behind;
                    let pieces = std::iter::once((*item, *buffer))
                        .chain(own.iter().filter_map(|(item, buffer)| Some((*item, (*buffer)?))));
                    self.buffer(transaction, &pieces.collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }

    /// How many of the items that follow a buffer are further parts of it: a directory block whose
    /// blocks are scattered is logged in several items, of which only the first has a magic number
    /// (docs/format/journal/replay.md#scattered-blocks).
    fn scattered(&self, first: &BufferItem, others: &[Block<'_, '_>]) -> usize {
        let whole = (self.geometry.dir_block_size() / 512) as u32;
        let mut sectors = u32::from(first.sectors);
        if !self.is_piece(first) {
            return 0;
        }
        for (index, (item, buffer)) in others.iter().enumerate() {
            let Some(part) = buffer.filter(|part| part.buffer_type == first.buffer_type) else {
                break;
            };
            // One that starts with a header of its own is another block.
            let starts = part.covers(0)
                && item.regions.get(1).is_some_and(|bytes| part.buffer_type.kind(bytes).is_some());
            sectors += u32::from(part.sectors);
            if starts || sectors > whole {
                break;
            }
            if sectors == whole {
                return index + 1;
            }
        }
        0
    }

    /// Whether a buffer is shorter than the directory block that it is of. Blocks of attributes,
    /// which have one length everywhere, may be among them where they have the same type.
    fn is_piece(&self, item: &BufferItem) -> bool {
        use BufferItemType as Type;
        let directory = matches!(
            item.buffer_type,
            Type::DirBlock
                | Type::DirData
                | Type::DirFree
                | Type::DirLeaf1
                | Type::DirLeafN
                | Type::DaNode
        );
        directory && (u32::from(item.sectors) as usize) * 512 < self.geometry.dir_block_size()
    }

    /// Replays one buffer, given in its parts.
    fn buffer(
        &mut self,
        transaction: &LoggedTransaction,
        parts: &[(&LogItem<'_>, &BufferItem)],
    ) -> Result<(), Error> {
        const QUOTA: BufferItemFlags = BufferItemFlags::USER_QUOTA
            .union(BufferItemFlags::GROUP_QUOTA)
            .union(BufferItemFlags::PROJECT_QUOTA);
        let (_, item) = parts[0];
        if self.cancels.will_free(item.sector, u32::from(item.sectors)) {
            return Ok(());
        }
        if item.flags.intersects(QUOTA) {
            self.dropped_quotas = true;
            return Ok(());
        }
        let places = parts.iter().map(|(_, part)| (part.sector, u32::from(part.sectors)));
        let address = BufferAddress::scattered(&places.collect::<Vec<_>>());
        if parts.len() == 1 && self.is_piece(item) {
            self.pieces.add(item.sector);
        }
        let damaged = |what: String| {
            let (sectors, sector) = (address.len() / 512, address.first());
            let what = format!("buffer of {sectors} sectors at sector {sector}: {what}");
            Error::from(transaction.damaged(what))
        };
        if address.len() < 512 {
            return Err(damaged("it has no length".into()));
        }
        let image = self.images.get(&address, &self.geometry)?;
        if image.is_newer(transaction.lsn, &self.geometry) {
            return match item.buffer_type.kind(&image.bytes) {
                Some(kind) => verify_buffer(kind, &image.bytes, &self.geometry).map_err(damaged),
                None => Ok(()),
            };
        }
        let mut start = 0;
        for (item, part) in parts {
            let end = start + usize::from(part.sectors) * 512;
            copy_runs(part, &item.regions[1..], &mut image.bytes[start..end]).map_err(damaged)?;
            start = end;
        }
        // A block that is not of the item's kind stays without a stamp, as in the kernel: a later
        // read will find it damaged.
        let kind = item.buffer_type.kind(&image.bytes);
        image.set_changed(transaction.lsn, kind);
        if item.buffer_type == BufferItemType::Superblock && item.sector == Sector(0) {
            self.resize();
        }
        Ok(())
    }

    /// Replays the list pointers that an item of a cluster of inodes holds, and nothing else of it.
    pub(super) fn list_pointers(
        &mut self,
        transaction: &LoggedTransaction,
        buffer: &BufferItem,
        item: &LogItem<'_>,
    ) -> Result<(), Error> {
        let sectors = u32::from(buffer.sectors);
        if self.cancels.will_free(buffer.sector, sectors) {
            return Ok(());
        }
        let damaged = |what: String| {
            let sector = buffer.sector;
            let what = format!("list pointers of the inodes at sector {sector}: {what}");
            Error::from(transaction.damaged(what))
        };
        if sectors == 0 {
            return Err(damaged("no sectors".into()));
        }
        let image = self.images.get(&flat(buffer.sector, sectors), &self.geometry)?;
        verify_inodes(&image.bytes, &self.geometry).map_err(damaged)?;
        let mut logged = image.bytes.clone();
        copy_runs(buffer, &item.regions[1..], &mut logged).map_err(damaged)?;
        let size = self.geometry.inode_size();
        for (index, inode) in image.bytes.chunks_exact_mut(size).enumerate() {
            let at = index * size + NEXT_UNLINKED_OFFSET;
            if !buffer.covers(at) {
                continue;
            }
            let next = be32(&logged, at);
            if next == 0 {
                return Err(damaged(format!("that of inode {index} is 0")));
            }
            put_be32(inode, NEXT_UNLINKED_OFFSET, next);
            stamp_inode_crc(inode);
        }
        image.set_stamped();
        Ok(())
    }

    /// Initialises a new chunk of inodes, unless its blocks will be freed.
    fn create(&mut self, transaction: &LoggedTransaction, item: &LogItem<'_>) -> Result<(), Error> {
        debug_assert_eq!(item.kind, LogItemKind::InodeCreate);
        let chunk = InodeCreateItem::decode(item.regions[0])
            .map_err(|defect| transaction.damaged(defect))?;
        let geometry = &self.geometry;
        check_chunk(&chunk, geometry).map_err(|what| {
            let InodeCreateItem { ag, block, .. } = chunk;
            transaction.damaged(format!("new inodes in group {ag} at block {block}: {what}"))
        })?;
        let cluster = geometry.cluster_blocks();
        let sectors = cluster * geometry.sectors_per_block();
        let clusters = (0..chunk.blocks / cluster).map(|index| {
            let block = AgBlock(chunk.block.0 + index * cluster);
            (block, flat(geometry.ag_sector(chunk.ag, block), sectors))
        });
        let clusters = clusters.collect::<Vec<_>>();
        let freed = |(_, at): &(_, BufferAddress)| self.cancels.will_free(at.first(), sectors);
        if clusters.iter().any(freed) {
            return Ok(());
        }
        for (block, address) in clusters {
            let first = geometry.inode_number(
                chunk.ag,
                crate::units::AgInode(block.0 << geometry.inodes_per_block_log()),
            );
            let image = self.images.fresh(&address, geometry)?;
            let inodes = image.bytes.chunks_exact_mut(geometry.inode_size());
            for (number, inode) in (first.0..).map(InodeNumber).zip(inodes) {
                InodeCore::write_never_used(inode, geometry, number, chunk.generation);
                stamp_inode_crc(inode);
            }
            image.set_stamped();
        }
        Ok(())
    }
}

/// Whether such a chunk is possible; the error names the defect.
fn check_chunk(chunk: &InodeCreateItem, geometry: &Geometry) -> Result<(), String> {
    let InodeCreateItem { ag, block, count, inode_size, blocks, .. } = *chunk;
    let end = block.checked_add(blocks);
    if end.is_none_or(|end| block.0 == 0 || end.0 > geometry.ag_length(ag)) {
        return Err(format!("{blocks} blocks are not inside the group"));
    }
    if inode_size as usize != geometry.inode_size() {
        return Err(format!("inodes of {inode_size} bytes, not {}", geometry.inode_size()));
    }
    let whole = geometry.chunk_inodes() >> geometry.inodes_per_block_log();
    if blocks == 0 || (blocks != whole && blocks != geometry.sparse_alignment) {
        return Err(format!("{blocks} blocks are no chunk, whole or sparse"));
    }
    if u64::from(count) != u64::from(blocks) << geometry.inodes_per_block_log() {
        return Err(format!("{count} inodes in {blocks} blocks"));
    }
    Ok(())
}

/// Checks what all inodes of a cluster must have.
pub(super) fn verify_inodes(bytes: &[u8], geometry: &Geometry) -> Result<(), String> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(geometry.inode_size()) {
        return Err(format!(
            "{} bytes are no cluster (first word {:#x})",
            bytes.len(),
            magic(bytes)
        ));
    }
    verify_buffer(crate::format::BufferKind::InodeCluster, bytes, geometry)
}
