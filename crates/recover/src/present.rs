//! The inodes of the present volume: which are in use, with which generation; and those that were
//! freed, with what they still say.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_block::is_zero;
use undercroft_xfs_format::units::{AgBlock, AgInode, AgNumber, InodeNumber, Lsn};
use undercroft_xfs_format::{
    FileType, InodeChunkRecord, InodeCore, InodeFlags2, inode_crc_matches,
};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::file_id::FileId;
use crate::progress::{Progress, Step};
use crate::stream::{joined, read_in_order};
use crate::trail::End;
use crate::trees;

/// Inodes of one record.
const CHUNK: u32 = InodeChunkRecord::INODES as u32;

/// One chunk: which of its inodes are in use, and their generations.
#[derive(Clone, Debug)]
struct Chunk {
    in_use: u64,
    generations: Box<[u32; CHUNK as usize]>,
}

/// Which inodes exist now: four bytes for each, and a bit.
#[derive(Debug, Default)]
pub(crate) struct Present {
    chunks: FxHashMap<u64, Chunk>,
    /// Inodes that could not be read, or whose checksum is wrong.
    pub(crate) unreadable: u64,
    /// Directories, where their removed entries are the names of files: on volumes without parent
    /// pointers.
    pub(crate) directories: Vec<InodeNumber>,
    /// Files that may share blocks.
    pub(crate) reflinked: Vec<InodeNumber>,
}

impl Present {
    /// The generation of an inode in use.
    pub(crate) fn generation(&self, number: InodeNumber) -> Option<u32> {
        let chunk = self.chunks.get(&(number.0 / u64::from(CHUNK)))?;
        let index = (number.0 % u64::from(CHUNK)) as usize;
        (chunk.in_use >> index & 1 == 1).then(|| chunk.generations[index])
    }

    /// Whether a file is there now.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.generation(file.number) == Some(file.generation)
    }

    fn insert(&mut self, number: InodeNumber, generation: u32) {
        let empty = || Chunk { in_use: 0, generations: Box::new([0; CHUNK as usize]) };
        let chunk = self.chunks.entry(number.0 / u64::from(CHUNK)).or_insert_with(empty);
        let index = (number.0 % u64::from(CHUNK)) as usize;
        chunk.in_use |= 1 << index;
        chunk.generations[index] = generation;
    }
}

/// Reads all chunks of inodes; hands over those that were freed, as the files that they were, and the cores of
/// those in use.
pub(crate) fn read(
    disk: &Disk,
    progress: &mut Progress<'_>,
    mut freed: impl FnMut(FileId, End),
    mut used: impl FnMut(&InodeCore),
) -> Result<Present, RecoverError> {
    progress.begin(Step::Inodes, 0);
    let geometry = &disk.geometry;
    let mut present = Present::default();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        let chunks = trees::inode_chunks(disk, ag)?;
        let ranges = joined(chunks.iter().flat_map(|chunk| parts(disk, ag, chunk)));
        let unit = u64::from(geometry.sectors_per_block());
        read_in_order(&disk.present, ranges, unit, |sectors, bytes| {
            let Ok(bytes) = bytes else {
                let bytes = (sectors.end - sectors.start) * 512;
                present.unreadable += bytes >> geometry.inode_log;
                return;
            };
            progress.read(bytes.len() as u64);
            let mut each = |number: InodeNumber, is_free: bool, bytes: &[u8]| {
                let core = take(disk, &mut present, (number, is_free, bytes), &mut freed);
                core.iter().for_each(&mut used);
            };
            visit_inodes(disk, ag, &chunks, sectors.start, bytes, &mut each);
        });
    }
    Ok(present)
}

/// The sectors of a chunk's inodes that exist.
fn parts(disk: &Disk, ag: AgNumber, chunk: &InodeChunkRecord) -> Vec<Range<u64>> {
    let geometry = &disk.geometry;
    let existing = chunk.existing();
    let per_block = geometry.inodes_per_block().min(CHUNK);
    let (first, _) = geometry.inode_block(chunk.start);
    let blocks = (CHUNK / per_block).max(1);
    let one = u64::from(geometry.sectors_per_block());
    let parts = (0..blocks).filter(|block| existing >> (block * per_block) & 1 == 1);
    let sector = |block| {
        let start = AgBlock(first.0.saturating_add(block));
        geometry.ag_sector(ag, start).0
    };
    joined(parts.map(sector).filter(|start| *start < u64::MAX / 2).map(|at| at..at + one))
}

/// Finds out which inodes lie in a piece of a group.
fn visit_inodes(
    disk: &Disk,
    ag: AgNumber,
    chunks: &[InodeChunkRecord],
    sector: u64,
    bytes: &[u8],
    each: &mut dyn FnMut(InodeNumber, bool, &[u8]),
) {
    let geometry = &disk.geometry;
    let group = geometry.ag_sector(ag, AgBlock(0)).0;
    let first = ((sector - group) * 512) >> geometry.inode_log;
    for (index, inode) in bytes.chunks_exact(geometry.inode_size()).enumerate() {
        let Ok(agino) = u32::try_from(first + index as u64) else { return };
        let behind = chunks.partition_point(|chunk| chunk.start.0 <= agino);
        let Some(chunk) = behind.checked_sub(1).map(|place| chunks[place]) else { continue };
        let place = agino - chunk.start.0;
        if place >= CHUNK || chunk.existing() >> place & 1 == 0 {
            continue;
        }
        let is_free = chunk.free >> place & 1 == 1;
        each(geometry.inode_number(ag, AgInode(agino)), is_free, inode);
    }
}

/// Takes one inode, in use or free; returns the core of one in use.
fn take(
    disk: &Disk,
    present: &mut Present,
    (number, is_free, bytes): (InodeNumber, bool, &[u8]),
    freed: &mut impl FnMut(FileId, End),
) -> Option<InodeCore> {
    let core = decode(disk, number, bytes);
    let Some(core) = core else {
        present.unreadable += 1;
        return None;
    };
    if !is_free && core.mode != 0 {
        present.insert(number, core.generation);
        let is_directory = core.file_type() == Some(FileType::Directory);
        if is_directory && !disk.geometry.features.parent_pointers() {
            present.directories.push(number);
        }
        if core.flags2.contains(InodeFlags2::REFLINK) {
            present.reflinked.push(number);
        }
        return Some(core);
    }
    if let Some(end) = end(disk, core, bytes) {
        freed(FileId::freed(&end.core), end);
    }
    None
}

/// A sound inode of this number.
pub(crate) fn decode(disk: &Disk, number: InodeNumber, bytes: &[u8]) -> Option<InodeCore> {
    let geometry = &disk.geometry;
    let mut core = InodeCore::decode(bytes, geometry).ok()?;
    if geometry.features.crc {
        let is_own = core.number == number && core.uuid == geometry.meta_uuid;
        return (is_own && inode_crc_matches(bytes)).then_some(core);
    }
    core.number = number;
    core.lsn = Lsn(0);
    Some(core)
}

/// The removal that a free inode tells of; one that was never used tells of none.
pub(crate) fn end(disk: &Disk, core: InodeCore, bytes: &[u8]) -> Option<End> {
    let literal = &bytes[disk.geometry.inode_core_size()..];
    let was_used = core.ctime.seconds != 0 || core.changecount != 0;
    (core.mode == 0 && was_used).then(|| End {
        lsn: core.lsn,
        time: core.ctime,
        core,
        literal: (!is_zero(literal)).then(|| literal.into()),
    })
}
