//! What free space still holds: inodes whose blocks were given back, blocks of removed directories,
//! of attributes and of maps; and where metadata was written over data.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_block::{Sector, is_zero, read_buffer};
use undercroft_xfs_format::units::{AgBlock, AgInode, AgNumber, FsBlock, InodeNumber, Lsn};
use undercroft_xfs_format::{
    BufferKind, Extent, Geometry, Header, INODE_MAGIC, InodeCore, TreeKind, bytes, verify_attr_leaf,
};

use crate::directory::{self, OldEntry};
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::names::{self, Name};
use crate::present::{decode, end};
use crate::progress::{Progress, Step};
use crate::space::FreeSpace;
use crate::stream::read_in_order;
use crate::trail::{End, InodeCopy, Origin};
use crate::trees::records_of_leaf;

/// What was found in free space, but for inodes.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// Names in blocks of removed directories.
    pub(crate) entries: Vec<OldEntry>,
    /// Names in leaves of attributes, by the inode that they belong to.
    pub(crate) names: FxHashMap<InodeNumber, Vec<Name>>,
    /// Leaves of maps by their inode, with their places in time.
    pub(crate) leaves: FxHashMap<InodeNumber, Vec<(Lsn, Vec<Extent>)>>,
    /// Blocks that hold metadata of this volume, in ascending order.
    pub(crate) metadata: Vec<FsBlock>,
    /// Blocks that could not be read, in ascending order.
    pub(crate) unreadable: Vec<Range<u64>>,
    /// Blocks that hold nothing but zeroes, in ascending order.
    pub(crate) zeroes: Vec<Range<u64>>,
}

/// An inode among the remains.
pub(crate) enum OldInode {
    /// As it was in use.
    Used(InodeCopy),
    /// As it was after its removal.
    Freed(FileId, End),
}

/// Reads all free space.
pub(crate) fn read(
    disk: &Disk,
    space: &FreeSpace,
    progress: &mut Progress<'_>,
    mut visit: impl FnMut(InodeNumber, OldInode),
) -> Remains {
    let geometry = &disk.geometry;
    let mut remains = Remains::default();
    let unit = u64::from(geometry.sectors_per_block());
    let block_size = geometry.block_size();
    let sectors = space.sectors(disk);
    let bytes = sectors.iter().map(|range| (range.end - range.start) * 512).sum();
    progress.begin(Step::FreeSpace, bytes);
    read_in_order(&disk.present, sectors, unit, |sectors, piece| {
        let Ok(piece) = piece else {
            remains.add_unreadable(disk, sectors, unit);
            return;
        };
        progress.read(piece.len() as u64);
        for (index, block) in piece.chunks_exact(block_size).enumerate() {
            let at = sectors.start + index as u64 * unit;
            let rest = &piece[index * block_size..];
            remains.block(disk, at, block, rest, &mut visit);
        }
    });
    remains.metadata.sort_unstable();
    remains
}

impl Remains {
    /// Takes sectors that could not be read, which are whole blocks of one group.
    fn add_unreadable(&mut self, disk: &Disk, sectors: Range<u64>, unit: u64) {
        let Some(first) = disk.block_at(sectors.start) else { return };
        add(&mut self.unreadable, first.0..first.0 + (sectors.end - sectors.start).div_ceil(unit));
    }

    fn block(
        &mut self,
        disk: &Disk,
        sector: u64,
        block: &[u8],
        rest: &[u8],
        visit: &mut impl FnMut(InodeNumber, OldInode),
    ) {
        let geometry = &disk.geometry;
        let Some(fs_block) = disk.block_at(sector) else { return };
        let (ag, agblock) = geometry.split_block(fs_block);
        if is_zero(block) {
            add(&mut self.zeroes, fs_block.0..fs_block.0 + 1);
        } else if bytes::be16(block, 0) == INODE_MAGIC {
            if self.inodes(disk, ag, agblock, block, visit) {
                self.metadata.push(fs_block);
            }
        } else if let Some(kind) = directory::kind(geometry, block) {
            self.directory(disk, sector, kind, rest);
        } else if geometry.features.crc
            && let Some(kind) = BufferKind::of_block(block)
            && let Some(header) = Header::of(kind)
            && header.verify(block, Sector(sector), &geometry.meta_uuid, block.len()).is_ok()
        {
            self.metadata.push(fs_block);
            self.owned(disk, sector, kind, &header, block);
        }
    }

    /// Takes the inodes of a block; whether there were any.
    fn inodes(
        &mut self,
        disk: &Disk,
        ag: AgNumber,
        block: AgBlock,
        content: &[u8],
        visit: &mut impl FnMut(InodeNumber, OldInode),
    ) -> bool {
        let geometry = &disk.geometry;
        let mut any = false;
        for (index, bytes) in content.chunks_exact(geometry.inode_size()).enumerate() {
            let agino = u64::from(block.0) << geometry.inodes_per_block_log() | index as u64;
            let Ok(agino) = u32::try_from(agino) else { return any };
            let number = geometry.inode_number(ag, AgInode(agino));
            // Without checksums nothing tells inodes from data that look like some.
            let Some(core) = decode(disk, number, bytes).filter(|_| geometry.features.crc) else {
                continue;
            };
            any = true;
            if core.mode != 0 {
                visit(number, OldInode::Used(in_place(disk, core, bytes)));
            } else if let Some(end) = end(disk, core, bytes) {
                visit(number, OldInode::Freed(FileId::freed(&end.core), end));
            }
        }
        any
    }

    fn directory(&mut self, disk: &Disk, sector: u64, kind: BufferKind, rest: &[u8]) {
        let geometry = &disk.geometry;
        let size = geometry.dir_block_size();
        let elsewhere;
        let block = if let Some(block) = rest.get(..size) {
            block
        } else {
            let Ok(read) = read_buffer(disk.present.as_ref(), Sector(sector), size) else { return };
            elsewhere = read;
            &elsewhere
        };
        if !directory::is_sound(geometry, block, kind, sector) {
            return;
        }
        if geometry.features.crc {
            for part in (0..size as u64 / 512).step_by(geometry.sectors_per_block() as usize) {
                self.metadata.extend(disk.block_at(sector + part));
            }
        }
        let Some(parent) = directory::owner(geometry, block, kind) else { return };
        let found = directory::of_block(geometry, block, kind);
        let lsn = Header::of(kind).and_then(|header| header.lsn(block)).unwrap_or_default();
        let old = |entry| OldEntry { parent, generation: None, lsn, entry };
        self.entries.extend(found.entries.into_iter().map(old));
    }

    /// Takes a block that belongs to an inode.
    fn owned(&mut self, disk: &Disk, sector: u64, kind: BufferKind, header: &Header, block: &[u8]) {
        let geometry = &disk.geometry;
        let Some(owner) = header.owner(block).map(InodeNumber) else { return };
        match kind {
            BufferKind::AttrLeaf if verify_attr_leaf(block, geometry).is_ok() => {
                let names = names::of_leaf(geometry, block);
                if !names.is_empty() {
                    self.names.entry(owner).or_default().extend(names);
                }
            }
            BufferKind::Tree(TreeKind::Bmbt) => {
                let sector = Sector(sector);
                let records = records_of_leaf(geometry, block, TreeKind::Bmbt, sector);
                if let Some(records) = records {
                    let lsn = header.lsn(block).unwrap_or_default();
                    let extents = records.map(Extent::decode).collect();
                    self.leaves.entry(owner).or_default().push((lsn, extents));
                }
            }
            _ => {}
        }
    }

    /// Sectors that could not be read.
    pub(crate) fn unreadable_sectors(&self, geometry: &Geometry) -> u64 {
        let blocks: u64 = self.unreadable.iter().map(|part| part.end - part.start).sum();
        blocks * u64::from(geometry.sectors_per_block())
    }

    /// The parts of a range of blocks that could not be read.
    pub(crate) fn unreadable_in(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.unreadable.partition_point(|part| part.end <= range.start);
        let inside = self.unreadable[first..].iter();
        let inside = inside.take_while(move |part| part.start < range.end);
        inside.map(move |part| part.start.max(range.start)..part.end.min(range.end))
    }

    /// Whether blocks hold nothing but zeroes.
    pub(crate) fn are_zeroes(&self, range: &Range<u64>) -> bool {
        let place = self.zeroes.partition_point(|part| part.end <= range.start);
        self.zeroes
            .get(place)
            .is_some_and(|part| part.start <= range.start && range.end <= part.end)
    }

    /// The blocks of a range that metadata was written over.
    pub(crate) fn metadata_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let first = self.metadata.partition_point(|block| block.0 < range.start);
        let inside = self.metadata[first..].iter().take_while(move |block| block.0 < range.end);
        inside.map(|block| block.0)
    }
}

/// Adds blocks behind others.
fn add(blocks: &mut Vec<Range<u64>>, more: Range<u64>) {
    match blocks.last_mut() {
        Some(last) if last.end == more.start => last.end = more.end,
        _ => blocks.push(more),
    }
}

/// The copy of an inode that lies in its place.
pub(crate) fn in_place(disk: &Disk, core: InodeCore, bytes: &[u8]) -> InodeCopy {
    let geometry = &disk.geometry;
    let data = bytes.get(core.data_fork(geometry)).map(Into::into);
    let attr = bytes.get(core.attr_fork(geometry)).filter(|_| core.forkoff > 0).map(Into::into);
    InodeCopy { lsn: core.lsn, origin: Origin::Chunk, core, data, attr }
}
