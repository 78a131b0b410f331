//! Pieces of version 4. They say neither whose they are nor where they belong: what they are follows from
//! their place in a volume whose superblock is known.

use std::ops::Range;

use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{BufferKind, FileType, Geometry, bytes};

use super::traces::{BlockTrace, InodeRun, Traces};

/// Where the first entry of the first block of a directory has its number, and what is behind it: the length
/// of the name, and the name.
const DOT: Range<usize> = 16..24;

/// Where blocks of trees of hashes have their magic number, and that of leaves of attributes.
const MAGIC: usize = 8;
const ATTRIBUTES: &[u8] = &[0xfb, 0xee];

/// Sectors at the same distance of one another that begin as inodes do.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    count: u64,
    /// 0 where there is one.
    step: u64,
    files: u64,
    directories: u64,
}

impl Run {
    const fn next(&self) -> u64 {
        self.first + self.count * self.step
    }

    fn sectors(&self) -> impl Iterator<Item = u64> {
        let (first, step) = (self.first, self.step);
        (0..self.count).map(move |index| first + index * step)
    }
}

/// A header of a group: its sector, its place in the group, and the group.
#[derive(Clone, Copy, Debug)]
struct GroupHeader {
    sector: u64,
    index: u64,
    ag: u64,
}

/// What was found of version 4.
#[derive(Debug, Default)]
pub(super) struct Unmarked {
    inodes: Vec<Run>,
    headers: Vec<GroupHeader>,
    /// Blocks of directories, with the inode that the first of each names; and leaves of attributes.
    blocks: Vec<(u64, BufferKind, Option<u64>)>,
}

impl Unmarked {
    /// Sectors that begin as inodes do.
    pub(super) fn inode_sectors(&self) -> u64 {
        self.inodes.iter().map(|run| run.count).sum()
    }

    /// Takes a sector that begins with the magic number of inodes.
    pub(super) fn add_inode(&mut self, sector: u64, rest: &[u8]) {
        let mode = bytes::be16(rest, 2);
        let kind = FileType::from_mode(mode);
        if !matches!(rest[4], 1 | 2) || (mode != 0 && kind.is_none()) {
            return;
        }
        let is_directory = kind == Some(FileType::Directory);
        let counts = (u64::from(mode != 0 && !is_directory), u64::from(is_directory));
        if let Some(last) = self.inodes.last_mut() {
            let step = sector.saturating_sub(last.first);
            // The longest inodes have 2 KiB.
            if last.count == 1 && (1..=4).contains(&step) {
                last.step = step;
            }
            if last.step > 0 && last.next() == sector {
                last.count += 1;
                last.files += counts.0;
                last.directories += counts.1;
                return;
            }
        }
        let (files, directories) = counts;
        self.inodes.push(Run { first: sector, count: 1, step: 0, files, directories });
    }

    /// Takes the header of the free space of a group, or that of its inodes.
    pub(super) fn add_header(&mut self, sector: u64, rest: &[u8], kind: BufferKind) {
        let index = if kind == BufferKind::Agf { 1 } else { 2 };
        // The version; that of others has a checksum.
        if bytes::be32(rest, 4) == 1 {
            self.headers.push(GroupHeader { sector, index, ag: bytes::be32(rest, 8).into() });
        }
    }

    /// Takes a block of a directory. The first says whose it is.
    pub(super) fn add_directory(&mut self, sector: u64, rest: &[u8]) {
        let is_first = rest.get(DOT.end..DOT.end + 2) == Some(b"\x01.");
        let owner = is_first.then(|| bytes::be64(rest, DOT.start));
        self.blocks.push((sector, BufferKind::DirData, owner));
    }

    /// Takes a sector that may begin a leaf of attributes.
    pub(super) fn add_other(&mut self, sector: u64, rest: &[u8]) {
        if rest.get(MAGIC..MAGIC + 2) == Some(ATTRIBUTES) {
            self.blocks.push((sector, BufferKind::AttrLeaf, None));
        }
    }

    /// Gives a volume of version 4 its pieces, by a copy of its superblock.
    pub(super) fn give(&self, traces: &mut Traces) {
        let Some(geometry) = traces.superblocks.last().map(|(_, copy)| copy.geometry()) else {
            return;
        };
        let in_group = geometry.sector_size() as u64 / 512;
        let group = u64::from(geometry.ag_blocks) << (geometry.block_log - 9);
        for header in &self.headers {
            let ahead = header.ag.saturating_mul(group).saturating_add(header.index * in_group);
            if let Some(start) = header.sector.checked_sub(ahead)
                && header.ag < geometry.ag_count.into()
            {
                traces.vote_for_start(start, header.sector);
            }
        }
        let Some((start, geometry)) = traces.told_start() else { return };
        let end = start.saturating_add(geometry.blocks << (geometry.block_log - 9));
        for header in self.headers.iter().filter(|header| (start..end).contains(&header.sector)) {
            traces.add_group_header(header.sector, header.ag);
        }
        self.give_inodes(traces, &geometry, start..end);
        let inside = self.blocks.iter().filter(|(sector, ..)| (start..end).contains(sector));
        let of_block = |(sector, kind, owner): &(u64, BufferKind, Option<u64>)| BlockTrace {
            sector: *sector,
            owner: owner.unwrap_or(BlockTrace::UNOWNED),
            lsn: Lsn::default(),
            start: 0,
            kind: *kind,
        };
        traces.blocks.extend(inside.map(of_block));
        traces.settle_start(start);
    }

    /// Blocks of which every inode begins as inodes do.
    fn give_inodes(&self, traces: &mut Traces, geometry: &Geometry, all: Range<u64>) {
        let per_block = u64::from(geometry.sectors_per_block());
        let wanted = per_block.min((geometry.block_size() / geometry.inode_size()) as u64);
        let runs = self.inodes.iter().filter(|run| all.contains(&run.first));
        let (mut at, mut seen) = (u64::MAX, 0);
        for run in runs {
            traces.files += run.files;
            traces.directories += run.directories;
            for sector in run.sectors() {
                let block = (sector - all.start) / per_block;
                if block != at {
                    (at, seen) = (block, 0);
                }
                seen += 1;
                if seen == wanted {
                    let ag = block / u64::from(geometry.ag_blocks);
                    let in_group = block % u64::from(geometry.ag_blocks);
                    let number =
                        (ag << geometry.ag_block_log | in_group) << geometry.inodes_per_block_log();
                    let count = geometry.inodes_per_block();
                    let sector = all.start + block * per_block;
                    traces.add_inodes(
                        InodeRun { sector, number: InodeNumber(number), count },
                        per_block,
                    );
                }
            }
        }
    }
}
