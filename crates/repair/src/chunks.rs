//! Which inodes exist, and which of them are in use: by the trees of the groups where they are sound, else by
//! the inodes themselves.

use std::collections::{BTreeMap, BTreeSet};

use undercroft_recover::pieces;
use undercroft_xfs::format::{
    Geometry, INODE_MAGIC, InodeChunkRecord, RmapOwner, bytes, inode_crc_matches,
};
use undercroft_xfs::units::{AgBlock, AgInode, AgNumber, InodeNumber};
use uuid::Uuid;

use crate::error::RepairError;
use crate::faults::Faults;
use crate::owners::Owners;
use crate::subject::Subject;
use crate::threads;

/// Inodes of a chunk.
pub(crate) const INODES: u32 = InodeChunkRecord::INODES as u32;

/// Bytes of a group that are read at once.
const WINDOW: u64 = 1 << 20;

/// The chunks of all groups.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pub(crate) groups: Vec<BTreeMap<AgInode, InodeChunkRecord>>,
    /// Groups whose tree could not be read, or not all of it.
    pub(crate) unreadable: BTreeSet<AgNumber>,
}

impl Chunks {
    pub(crate) fn read(
        subject: &Subject,
        faults: &Faults,
        owners: &mut Owners,
    ) -> Result<Self, RepairError> {
        let mut chunks = Self::default();
        for ag in (0..subject.geometry.ag_count).map(AgNumber) {
            let told = pieces::chunks(&subject.disk, ag).ok();
            let is_faulty = faults.inode_trees.contains(&ag);
            let records = match told {
                Some(records) if !is_faulty => records,
                told => {
                    if told.is_none() {
                        chunks.unreadable.insert(ag);
                    }
                    let found = found(subject, ag, owners)?;
                    joined(subject, ag, told.unwrap_or_default(), found)
                }
            };
            chunks.groups.push(records.into_iter().map(|record| (record.start, record)).collect());
        }
        chunks.complete(&subject.geometry);
        Ok(chunks)
    }

    /// Adds a chunk of free inodes where there is none in a place, if that has inodes.
    pub(crate) fn add(&mut self, geometry: &Geometry, number: InodeNumber) {
        let (ag, agino) = geometry.split_inode(number);
        if let Some(group) = self.groups.get_mut(ag.0 as usize) {
            let start = AgInode(agino.0 & !(INODES - 1));
            group.entry(start).or_insert(free_chunk(start));
        }
        self.complete(geometry);
    }

    /// Where a block has inodes for several chunks, all of them are there or none.
    fn complete(&mut self, geometry: &Geometry) {
        let per_block = 1 << geometry.inodes_per_block_log();
        if per_block <= INODES {
            return;
        }
        for group in &mut self.groups {
            let blocks: BTreeSet<u32> =
                group.keys().map(|start| start.0 & !(per_block - 1)).collect();
            for first in blocks {
                for start in (first..first + per_block).step_by(INODES as usize).map(AgInode) {
                    group.entry(start).or_insert(free_chunk(start));
                }
            }
        }
    }

    /// Whether a number is that of an inode in use.
    pub(crate) fn in_use(&self, geometry: &Geometry, number: InodeNumber) -> bool {
        self.record(geometry, number)
            .is_some_and(|(record, index)| record.existing() & !record.free & 1 << index != 0)
    }

    /// Whether there is a place for an inode.
    pub(crate) fn exists(&self, geometry: &Geometry, number: InodeNumber) -> bool {
        let record = self.record(geometry, number);
        record.is_some_and(|(record, index)| record.existing() & 1 << index != 0)
    }

    fn record(&self, geometry: &Geometry, number: InodeNumber) -> Option<(InodeChunkRecord, u32)> {
        let (ag, agino) = geometry.split_inode(number);
        let group = self.groups.get(ag.0 as usize)?;
        let (start, record) = group.range(..=agino).next_back()?;
        let index = agino.0 - start.0;
        (index < INODES).then_some((*record, index))
    }

    /// Says that an inode is in use, or is not; whether that is new.
    pub(crate) fn set(&mut self, geometry: &Geometry, number: InodeNumber, in_use: bool) -> bool {
        let (ag, agino) = geometry.split_inode(number);
        let Some(group) = self.groups.get_mut(ag.0 as usize) else { return false };
        let Some((start, record)) = group.range_mut(..=agino).next_back() else { return false };
        let index = agino.0 - start.0;
        if index >= INODES {
            return false;
        }
        let old = record.free;
        let bit = 1 << index;
        record.free = if in_use { old & !bit } else { old | bit };
        record.freecount = (record.free & record.existing()).count_ones() as u8;
        record.free != old
    }
}

fn free_chunk(start: AgInode) -> InodeChunkRecord {
    let count = InodeChunkRecord::INODES;
    InodeChunkRecord { start, holemask: 0, count, freecount: count, free: u64::MAX }
}

/// The runs of blocks that a chunk takes.
pub(crate) fn blocks(
    geometry: &Geometry,
    record: &InodeChunkRecord,
) -> impl Iterator<Item = (AgBlock, u32)> + use<> {
    let (shift, start) = (geometry.inodes_per_block_log(), record.start.0);
    let mut left = record.existing();
    std::iter::from_fn(move || {
        while left != 0 {
            let first = left.trailing_zeros();
            let len = (left >> first).trailing_ones();
            left &= if first + len == 64 { 0 } else { u64::MAX << (first + len) };
            let at = start + first;
            // A block of more inodes than a chunk has two chunks: the first counts.
            if at & ((1 << shift) - 1) == 0 {
                let block = at >> shift;
                return Some((AgBlock(block), (at + len).div_ceil(1 << shift) - block));
            }
        }
        None
    })
}

/// Inodes that are in their places in a group: by chunks, bit masks of those found, and of those in use.
type Found = BTreeMap<AgInode, (u64, u64)>;

fn found(subject: &Subject, ag: AgNumber, owners: &mut Owners) -> Result<Found, RepairError> {
    let geometry = &subject.geometry;
    let size = geometry.inode_size();
    let per_block = geometry.sectors_per_block();
    let (first, end) = (geometry.ag_header_blocks(), geometry.ag_length(ag));
    let step = (WINDOW >> geometry.block_log) as u32;
    let windows = end.saturating_sub(first).div_ceil(step) as usize;
    let parts = threads::each(windows, Found::new, |found, index| {
        let block = first + index as u32 * step;
        let count = step.min(end - block);
        let sector = geometry.ag_sector(ag, AgBlock(block));
        let bytes = subject.scratch.read(sector, (count * per_block) as usize * 512)?;
        for (index, inode) in bytes.chunks_exact(size).enumerate() {
            let agino = AgInode((block << geometry.inodes_per_block_log()) + index as u32);
            let number = geometry.inode_number(ag, agino);
            if !is_inode(inode, number, geometry.meta_uuid) {
                continue;
            }
            let start = AgInode(agino.0 & !(INODES - 1));
            let (seen, used) = found.entry(start).or_default();
            let bit = 1_u64 << (agino.0 - start.0);
            *seen |= bit;
            if bytes::be16(inode, 2) != 0 {
                *used |= bit;
            }
        }
        Ok(())
    })?;
    let mut found = Found::new();
    for (start, (seen, used)) in parts.into_iter().flatten() {
        let (all_seen, all_used) = found.entry(start).or_default();
        *all_seen |= seen;
        *all_used |= used;
    }
    // Chunks that were given back lie in blocks of others, or in free ones.
    let known = owners.of_group(subject, ag);
    if let Some(known) = known {
        found.retain(|start, _| {
            let (block, _) = geometry.inode_block(*start);
            known.iter().any(|record| {
                record.owner == RmapOwner::INODES
                    && record.start.0 < block.0 + geometry.chunk_blocks()
                    && record.start.0 + record.len > block.0
            })
        });
    } else {
        found.retain(|_, (_, used)| *used != 0);
    }
    Ok(found)
}

/// Whether bytes are the inode of a number.
pub(crate) fn is_inode(inode: &[u8], number: InodeNumber, uuid: Uuid) -> bool {
    bytes::be16(inode, 0) == INODE_MAGIC
        && inode[4] == 3
        && bytes::be64(inode, 152) == number.0
        && inode[160..176] == *uuid.as_bytes()
        && inode_crc_matches(inode)
}

/// The chunks that a tree tells, as far as they can be, and those that were found beside them.
fn joined(
    subject: &Subject,
    ag: AgNumber,
    told: Vec<InodeChunkRecord>,
    found: Found,
) -> Vec<InodeChunkRecord> {
    let geometry = &subject.geometry;
    let mut chunks: BTreeMap<AgInode, InodeChunkRecord> = BTreeMap::new();
    for record in told {
        let seen = found.get(&AgInode(record.start.0 & !(INODES - 1))).map(|(seen, _)| *seen);
        let mut record = seen.map_or(record, |seen| without_false_holes(record, seen, &found));
        // What says of itself that it is in use is not free.
        record.free &= !found.get(&record.start).map_or(0, |(_, used)| *used);
        let is_backed = seen.is_some_and(|seen| seen & record.existing() != 0);
        let last = AgInode(record.start.0.saturating_add(INODES - 1));
        let is_valid = record.start.0.is_multiple_of(INODES)
            && [record.start, last]
                .into_iter()
                .all(|agino| geometry.valid_inode(geometry.inode_number(ag, agino)));
        if is_backed && is_valid {
            chunks.insert(record.start, record);
        }
    }
    for (start, (seen, used)) in found {
        chunks.entry(start).or_insert_with(|| of_found(subject, start, seen, used));
    }
    let mut records: Vec<_> = chunks.into_values().collect();
    for record in &mut records {
        let existing = record.existing();
        record.free |= !existing;
        record.count = existing.count_ones() as u8;
        record.freecount = (record.free & existing).count_ones() as u8;
    }
    records
}

/// A chunk in whose holes there are no inodes.
fn without_false_holes(record: InodeChunkRecord, seen: u64, found: &Found) -> InodeChunkRecord {
    let mut record = record;
    let used = found.get(&record.start).map_or(0, |(_, used)| *used);
    for hole in 0..16 {
        let mask = 0xf << (4 * hole);
        if record.holemask & 1 << hole != 0 && seen & mask != 0 {
            record.holemask &= !(1 << hole);
            record.free = record.free & !mask | !used & mask;
        }
    }
    record
}

/// A chunk by its inodes: parts that may be missing, and have none, are.
fn of_found(subject: &Subject, start: AgInode, seen: u64, used: u64) -> InodeChunkRecord {
    let geometry = &subject.geometry;
    let mut holemask = 0_u16;
    if geometry.features.sparse_inodes() {
        let unit = geometry.sparse_alignment.max(1) << geometry.inodes_per_block_log();
        let unit = unit.clamp(InodeChunkRecord::INODES_PER_HOLE, INODES);
        for first in (0..INODES).step_by(unit as usize) {
            let mask = if unit == 64 { u64::MAX } else { ((1 << unit) - 1) << first };
            if seen & mask == 0 {
                let holes = first / 4..(first + unit) / 4;
                holes.for_each(|hole| holemask |= 1 << hole);
            }
        }
    }
    InodeChunkRecord { start, holemask, count: 0, freecount: 0, free: !used }
}
