//! Start and sizes of a volume: from copies of its superblock, else from what its pieces say.

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{AgBlock, AgNumber, FsBlock, InodeNumber};
use undercroft_xfs_format::{BufferKind, Features, Geometry, Incompat, RoCompat, TreeKind};

use super::traces::{Traces, Vote};
use crate::shape::Shape;

/// Different sizes that copies of superblocks are compared for.
const MOST_SHAPES: usize = 64;

/// Pieces that are asked for sizes.
const SAMPLE: usize = 8192;

impl Traces {
    /// Where the volume is on a device of `capacity` sectors; `None` if too little is left to tell.
    pub(crate) fn shape(&self, capacity: u64) -> Option<Shape> {
        let start = self.start()?;
        if let Some(geometry) = self.told(start) {
            return Some(Shape { start, geometry, is_told: true });
        }
        let geometry = self.deduced(start, capacity)?;
        Some(Shape { start, geometry, is_told: false })
    }

    /// The first sector.
    fn start(&self) -> Option<u64> {
        let start = most(&self.starts).map(|vote| vote.place);
        // A volume without any other block has its superblock first.
        start.or(self.superblocks.first().map(|(sector, _)| *sector))
    }

    /// Start and sizes, if a copy of the superblock says them.
    pub(super) fn told_start(&self) -> Option<(u64, Geometry)> {
        let start = self.start()?;
        Some((start, self.told(start)?))
    }

    /// Headers of groups that are not where they belong: the superblock or its copy, and three more; in
    /// version 4 two, since the third cannot be told.
    pub(crate) fn lost_headers(&self, shape: &Shape) -> u64 {
        let geometry = &shape.geometry;
        let group = u64::from(geometry.ag_blocks) << (geometry.block_log - 9);
        let offset = |sector: u64| sector.checked_sub(shape.start);
        let copies = self.superblocks.iter().filter_map(|(sector, _)| offset(*sector));
        let copies = copies.filter(|offset| offset.is_multiple_of(group)).count();
        let headers = self.group_headers.iter();
        let is_in_place =
            |(sector, ag): &&(u64, u64)| offset(*sector).is_some_and(|at| at / group == *ag);
        let headers = headers.filter(is_in_place).count();
        let all = if geometry.features.crc { 4 } else { 3 };
        (all * u64::from(geometry.ag_count)).saturating_sub((copies + headers) as u64)
    }

    /// The sizes that most copies of the superblock say. A copy counts if it is where a group begins.
    fn told(&self, start: u64) -> Option<Geometry> {
        let mut counts: Vec<(Geometry, usize)> = Vec::new();
        for (sector, superblock) in &self.superblocks {
            let geometry = superblock.geometry();
            let group = u64::from(geometry.ag_blocks) << (geometry.block_log - 9);
            if sector.checked_sub(start).is_none_or(|offset| !offset.is_multiple_of(group)) {
                continue;
            }
            match counts.iter().position(|(known, _)| *known == geometry) {
                Some(place) => counts[place].1 += 1,
                None if counts.len() < MOST_SHAPES => counts.push((geometry, 1)),
                None => {}
            }
        }
        // Of as many the first: the copy of the first group.
        counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(geometry, _)| geometry)
    }

    /// The sizes that block numbers, inode numbers and groups agree with.
    fn deduced(&self, start: u64, capacity: u64) -> Option<Geometry> {
        let block_log = self.block_log.or(self.dir_log.map(|log| log.min(12))).unwrap_or(12);
        let inode_log = self.inode_log?;
        let per_block_log = block_log.checked_sub(inode_log)?;
        let block = |sector: u64| Some(sector.checked_sub(start)? >> (block_log - 9));
        let step = |len: usize| len.div_ceil(SAMPLE).max(1);
        let inodes: Vec<(u64, u64)> = (self.inodes.iter().step_by(step(self.inodes.len())))
            .filter_map(|run| Some((run.number.0 >> per_block_log, block(run.sector)?)))
            .collect();
        let trees: Vec<_> = self.blocks.iter().filter(|trace| is_of_group(trace.kind)).collect();
        let trees = trees.iter().step_by(step(trees.len()));
        let mut groups: Vec<(u64, u64)> =
            trees.filter_map(|trace| Some((trace.owner, block(trace.sector)?))).collect();
        let headers = self.group_headers.iter().step_by(step(self.group_headers.len()));
        groups.extend(headers.filter_map(|(sector, ag)| Some((*ag, block(*sector)?))));
        let (ag_block_log, ag_blocks) = group_size(&inodes, &groups)?;
        let last = inodes.iter().map(|(number, _)| number >> ag_block_log);
        let last = last.chain(groups.iter().map(|(ag, _)| *ag)).max()?;
        let ag_count = u32::try_from(last + 1).ok()?;
        let there = capacity.saturating_sub(start) >> (block_log - 9);
        let blocks = there.max((last + 1) * u64::from(ag_blocks));
        let ag_count = ag_count.max(u32::try_from(blocks.div_ceil(ag_blocks.into())).ok()?);
        let mut geometry = Geometry {
            block_log,
            sector_log: 9,
            inode_log,
            dir_block_log: self.dir_log.map_or(0, |log| log.saturating_sub(block_log)),
            blocks,
            ag_blocks,
            ag_count,
            ag_block_log,
            features: newest(),
            meta_uuid: self.uuid,
            uuid: self.uuid,
            log_start: FsBlock::NULL,
            log_blocks: 0,
            log_stripe_unit: 1,
            inode_alignment: 1,
            sparse_alignment: 0,
            stripe_unit: 0,
            stripe_width: 0,
            inode_max_percent: 0,
            // Who is the root, the directories say.
            root_inode: InodeNumber(0),
        };
        if let Some(journal) = most(&self.journals)
            && let (Some(first), Some(end)) = (block(journal.place), block(journal.end))
            && let Ok(ag) = u32::try_from(first / u64::from(ag_blocks))
        {
            let in_group = AgBlock((first % u64::from(ag_blocks)) as u32);
            geometry.log_start = geometry.fs_block(AgNumber(ag), in_group);
            geometry.log_blocks = u32::try_from(end - first).unwrap_or(0);
        }
        Some(geometry)
    }
}

fn most(votes: &[Vote]) -> Option<&Vote> {
    votes.iter().max_by_key(|vote| (vote.count, std::cmp::Reverse(vote.place)))
}

const fn is_of_group(kind: BufferKind) -> bool {
    matches!(kind, BufferKind::Tree(tree) if !matches!(tree, TreeKind::Bmbt))
}

/// The features that are needed to read what newest volumes have; what older ones lack is not found.
fn newest() -> Features {
    Features {
        ro_compat: RoCompat::FINOBT | RoCompat::RMAPBT | RoCompat::REFLINK | RoCompat::INOBTCNT,
        incompat: Incompat::FTYPE
            | Incompat::SPINODES
            | Incompat::BIGTIME
            | Incompat::NREXT64
            | Incompat::PARENT,
        crc: true,
        ..Features::default()
    }
}

/// Bits of a block's number in its group, and blocks of a group. `inodes` are blocks of inodes by their
/// number and by their place; `groups` are groups with a place in each.
fn group_size(inodes: &[(u64, u64)], groups: &[(u64, u64)]) -> Option<(u8, u32)> {
    let mut best: Option<(usize, u8, u32)> = None;
    // The longest groups first: where all inodes are near their starts, parts of them fit as well.
    for log in (4..32_u8).rev() {
        let split = |number: u64| (number >> log, number & ((1 << log) - 1));
        let mut sizes: FxHashMap<u64, usize> = FxHashMap::default();
        *sizes.entry(1 << log).or_default() += 1;
        for (number, place) in inodes {
            let (ag, in_group) = split(*number);
            if let Some(size) = place.checked_sub(in_group)
                && ag > 0
                && size.is_multiple_of(ag)
            {
                *sizes.entry(size / ag).or_default() += 1;
            }
        }
        let mut sizes: Vec<_> = sizes.into_iter().collect();
        sizes.sort_unstable_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
        let possible = |size: &u64| (1 << (log - 1)) < *size && *size <= 1 << log;
        for size in sizes.into_iter().map(|(size, _)| size).filter(possible).take(8) {
            let fits = |(number, place): &&(u64, u64)| {
                let (ag, in_group) = split(*number);
                in_group < size && ag * size + in_group == *place
            };
            let is_in = |(ag, place): &&(u64, u64)| place / size == *ag;
            let score = inodes.iter().filter(fits).count() + groups.iter().filter(is_in).count();
            let Ok(size) = u32::try_from(size) else { continue };
            if best.is_none_or(|(known, ..)| score > known) {
                best = Some((score, log, size));
            }
        }
    }
    best.filter(|(score, ..)| *score > 0).map(|(_, log, size)| (log, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(u64, u64)>;

    /// Inodes and trees of a volume with groups of `size` blocks.
    fn volume(size: u64, log: u8) -> (Pairs, Pairs) {
        let places = (0..4_u64).flat_map(|ag| (0..20).map(move |index| (ag, 16 + index * 37)));
        let inodes = places.map(|(ag, block)| (ag << log | block, ag * size + block)).collect();
        (inodes, (0..4).map(|ag| (ag, ag * size + 3)).collect())
    }

    #[test]
    fn sizes_of_groups_follow_from_numbers() {
        for (size, log) in [(65_536, 16), (65_535, 16), (40_000, 16), (81_920, 17), (4096, 12)] {
            let (inodes, groups) = volume(size, log);
            assert_eq!(group_size(&inodes, &groups), Some((log, size as u32)));
            // Where a group is as long as its numbers, places and numbers are the same.
            let alone = group_size(&inodes, &[]);
            assert!(alone == Some((log, size as u32)) || size == 1 << log, "{alone:?}");
        }
        assert_eq!(group_size(&[], &[]), None);
    }
}
