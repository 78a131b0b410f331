//! What a scan found of one volume.

use undercroft_xfs_format::units::{InodeNumber, Lsn};
use undercroft_xfs_format::{BufferKind, FileType, LogRecordHeader, Superblock, TreeKind, bytes};
use uuid::Uuid;

/// Places that are told apart: starts of volumes of one UUID, and starts of journals.
const MOST_PLACES: usize = 256;

/// Copies of superblocks that are kept, and headers of groups: more than volumes have that were grown
/// to their limits.
const MOST_COPIES: usize = 1 << 20;

/// Inodes that follow one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InodeRun {
    /// Sector of the first.
    pub(crate) sector: u64,
    /// Number of the first.
    pub(crate) number: InodeNumber,
    /// How many.
    pub(crate) count: u32,
}

/// A block of metadata with a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockTrace {
    pub(crate) sector: u64,
    /// Inode or group.
    pub(crate) owner: u64,
    pub(crate) lsn: Lsn,
    /// Which of the starts it belongs to.
    pub(crate) start: u32,
    pub(crate) kind: BufferKind,
}

impl BlockTrace {
    /// In the place of an owner that the block does not name.
    pub(crate) const UNOWNED: u64 = 0;
}

/// A place, and how many pieces confirm it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vote {
    pub(super) place: u64,
    pub(super) count: u64,
    /// End of what was found there.
    pub(super) end: u64,
}

/// What is left of one volume.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The UUID that its metadata name.
    pub uuid: Uuid,
    /// Inodes in use that are not directories.
    pub files: u64,
    /// Inodes of directories.
    pub directories: u64,
    pub(super) inode_log: Option<u8>,
    pub(super) block_log: Option<u8>,
    pub(super) dir_log: Option<u8>,
    pub(super) starts: Vec<Vote>,
    pub(super) journals: Vec<Vote>,
    pub(crate) superblocks: Vec<(u64, Superblock)>,
    /// Headers of groups: sector, group.
    pub(super) group_headers: Vec<(u64, u64)>,
    pub(crate) inodes: Vec<InodeRun>,
    pub(crate) blocks: Vec<BlockTrace>,
}

impl Traces {
    /// Blocks of metadata.
    #[must_use]
    pub fn block_count(&self) -> u64 {
        (self.blocks.len() + self.superblocks.len() + self.group_headers.len()) as u64
    }

    /// The blocks of a volume that starts at a sector.
    pub(crate) fn blocks_from(&self, start: u64) -> impl Iterator<Item = &BlockTrace> {
        let index = self.starts.iter().position(|vote| vote.place == start);
        self.blocks.iter().filter(move |trace| Some(trace.start as usize) == index)
    }

    /// Whether it is of version 4, as all copies of its superblock say.
    pub(super) fn is_unmarked(&self) -> bool {
        let is_old = |(_, copy): &(u64, Superblock)| !copy.geometry().features.crc;
        !self.superblocks.is_empty() && self.superblocks.iter().all(is_old)
    }

    /// A piece says that the volume starts at a sector.
    pub(super) fn vote_for_start(&mut self, start: u64, end: u64) {
        vote(&mut self.starts, start, end);
    }

    /// The volume starts at a sector, and all of its blocks are of that one.
    pub(super) fn settle_start(&mut self, start: u64) {
        self.starts = vec![Vote { place: start, count: 1, end: start }];
    }

    /// Adds a block of inodes.
    pub(super) fn add_inodes(&mut self, run: InodeRun, sectors: u64) {
        if let Some(last) = self.inodes.last_mut() {
            let blocks = u64::from(last.count / run.count);
            let follows = last.sector + blocks * sectors == run.sector
                && last.number.0.checked_add(last.count.into()) == Some(run.number.0);
            if follows && last.count < u32::MAX - run.count {
                last.count += run.count;
                return;
            }
        }
        self.inodes.push(run);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.blocks.is_empty()
            && self.superblocks.is_empty()
            && self.group_headers.is_empty()
            && self.inodes.is_empty()
    }

    /// log2 of the length of blocks of a kind, as far as known.
    pub(super) fn size_of(&self, kind: BufferKind) -> Option<u8> {
        match class(kind) {
            Class::Block => self.block_log,
            Class::Directory => self.dir_log,
            Class::Any => None,
        }
    }

    pub(super) fn add_inode(&mut self, sector: u64, number: InodeNumber, inode: &[u8]) {
        self.inode_log = Some(inode.len().trailing_zeros() as u8);
        match FileType::from_mode(bytes::be16(inode, 2)) {
            _ if bytes::be16(inode, 2) == 0 => {}
            Some(FileType::Directory) => self.directories += 1,
            _ => self.files += 1,
        }
        let sectors = inode.len() as u64 / 512;
        if let Some(last) = self.inodes.last_mut() {
            let count = u64::from(last.count);
            let follows = last.sector + count * sectors == sector
                && last.number.0.checked_add(count) == Some(number.0);
            if follows && last.count < u32::MAX {
                last.count += 1;
                return;
            }
        }
        self.inodes.push(InodeRun { sector, number, count: 1 });
    }

    pub(super) fn add_block(&mut self, mut trace: BlockTrace, start: u64, len: usize) {
        let log = len.trailing_zeros() as u8;
        match class(trace.kind) {
            Class::Block => self.block_log = Some(log),
            Class::Directory => self.dir_log = Some(log),
            Class::Any => {}
        }
        let end = trace.sector + len as u64 / 512;
        if let Some(index) = vote(&mut self.starts, start, end) {
            trace.start = index as u32;
            self.blocks.push(trace);
        }
    }

    pub(super) fn add_superblock(&mut self, sector: u64, superblock: Superblock) {
        if self.superblocks.len() < MOST_COPIES {
            self.superblocks.push((sector, superblock));
        }
    }

    pub(super) fn add_group_header(&mut self, sector: u64, ag: u64) {
        if self.group_headers.len() < MOST_COPIES {
            self.group_headers.push((sector, ag));
        }
    }

    pub(super) fn add_record(&mut self, sector: u64, header: &LogRecordHeader) {
        if let Some(start) = sector.checked_sub(header.lsn.block().into()) {
            vote(&mut self.journals, start, sector + header.blocks());
        }
    }
}

/// Counts a place; returns its index, unless there are too many.
fn vote(votes: &mut Vec<Vote>, place: u64, end: u64) -> Option<usize> {
    if let Some(index) = votes.iter().position(|vote| vote.place == place) {
        votes[index].count += 1;
        votes[index].end = votes[index].end.max(end);
        return Some(index);
    }
    if votes.len() == MOST_PLACES {
        return None;
    }
    votes.push(Vote { place, count: 1, end });
    Some(votes.len() - 1)
}

/// What decides on the length of a block.
enum Class {
    /// A block of the volume.
    Block,
    /// A block of directories.
    Directory,
    /// Either, or an extent.
    Any,
}

fn class(kind: BufferKind) -> Class {
    match kind {
        BufferKind::Tree(
            TreeKind::Bnobt | TreeKind::Cntbt | TreeKind::Inobt | TreeKind::Finobt,
        )
        | BufferKind::Tree(TreeKind::Rmapbt | TreeKind::Refcountbt | TreeKind::Bmbt)
        | BufferKind::AttrLeaf
        | BufferKind::AttrRemote => Class::Block,
        BufferKind::DirBlock
        | BufferKind::DirData
        | BufferKind::DirFree
        | BufferKind::DirLeaf1
        | BufferKind::DirLeafN => Class::Directory,
        _ => Class::Any,
    }
}
