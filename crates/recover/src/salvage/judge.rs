//! What of each file is left: by who owns its blocks, by claims of others, by what cannot be read.

use std::ops::Range;

use undercroft_xfs_format::units::FsBlock;
use undercroft_xfs_format::{Extent, FileType, RmapFlags};

use super::groups::Groups;
use super::inodes::{About, Inodes};
use crate::claims::{Claim, Life, Owners};
use crate::content::Content;
use crate::disk::Disk;
use crate::found::{FoundFile, State};

/// Ranges of sectors, ascending, that no file can have: of metadata, of other volumes, unreadable ones.
#[derive(Debug, Default)]
pub(super) struct Taken(pub(super) Vec<Range<u64>>);

impl Taken {
    /// The parts of a range.
    fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Self(taken) = self;
        let first = taken.partition_point(|part| part.end <= range.start);
        let inside = taken[first..].iter().take_while(move |part| part.start < range.end);
        inside.map(move |part| part.start.max(range.start)..part.end.min(range.end))
    }
}

/// Gives each file its state; returns how many blocks are claimed by others, too.
pub(super) fn judge(disk: &Disk, groups: &Groups, inodes: &mut Inodes, taken: &Taken) -> u64 {
    let mut claims: Vec<Claim> = Vec::new();
    for (index, file) in inodes.files.iter().enumerate() {
        claims.extend(own_claims(file, index));
    }
    let owners = Owners::new(&claims);
    let mut lost: Vec<Vec<Range<u64>>> = vec![Vec::new(); inodes.files.len()];
    let mut contested = 0;
    for claim in &claims {
        let (file, about) = (&inodes.files[claim.file], &inodes.about[claim.file]);
        let others: Vec<_> = owners.lost(claim);
        contested += u64::from(!others.is_empty());
        let parts = lost_to_owners(disk, groups, (file, about), claim, others);
        let blocks = parts.into_iter().map(|part| {
            let start = part.start - claim.blocks.start + claim.offset;
            start..start + (part.end - part.start)
        });
        lost[claim.file].extend(blocks);
        lost[claim.file].extend(taken_from(disk, taken, claim));
    }
    for (file, lost) in inodes.files.iter_mut().zip(lost) {
        (file.state, file.losses) = state(disk, file, lost);
    }
    contested
}

fn own_claims(file: &FoundFile, index: usize) -> impl Iterator<Item = Claim> {
    let extents: &[Extent] = match &file.content {
        Content::Map(map) if file.kind == Some(FileType::Regular) => &map.extents,
        _ => &[],
    };
    let life = file.is_reflinked.then_some(Life { changed: file.ctime, ended: None });
    let written = extents.iter().filter(|extent| !extent.unwritten);
    let lsn = file.last_seen;
    written.map(move |extent| Claim {
        blocks: extent.start.0..extent.start.0 + u64::from(extent.len),
        offset: extent.offset.0,
        lsn,
        file: index,
        life,
    })
}

/// The blocks of a claim that belong to others: those that trees say are another's, and, where no tree
/// says whose a block is, those that another claims later.
fn lost_to_owners(
    disk: &Disk,
    groups: &Groups,
    (file, about): (&FoundFile, &About),
    claim: &Claim,
    others: Vec<Range<u64>>,
) -> Vec<Range<u64>> {
    let data = |flags: RmapFlags| !flags.intersects(RmapFlags::ATTR_FORK | RmapFlags::BMBT_BLOCK);
    let is_own = |owner: u64, flags| owner == file.id.number.0 && data(flags);
    let owners: Vec<_> = groups.at(claim.blocks.clone()).collect();
    let own = owners.iter().filter(|owned| is_own(owned.owner.0, owned.flags));
    let own: Vec<_> = own.map(|owned| owned.blocks.clone()).collect();
    if about.is_of_journal {
        return others;
    }
    let start = FsBlock(claim.blocks.start);
    let gone = if groups.know_owners(disk, start) {
        vec![claim.blocks.clone()]
    } else {
        let foreign = owners.iter().filter(|owned| !is_own(owned.owner.0, owned.flags));
        let foreign = foreign.map(|owned| {
            owned.blocks.start.max(claim.blocks.start)..owned.blocks.end.min(claim.blocks.end)
        });
        others.into_iter().chain(foreign).collect()
    };
    without(gone, own)
}

/// What is left of ranges without others.
fn without(ranges: Vec<Range<u64>>, mut others: Vec<Range<u64>>) -> Vec<Range<u64>> {
    others.sort_unstable_by_key(|range| range.start);
    let mut left = Vec::new();
    for range in ranges {
        let mut at = range.start;
        for other in others.iter().filter(|other| other.end > range.start) {
            if other.start >= range.end {
                break;
            }
            if other.start > at {
                left.push(at..other.start);
            }
            at = at.max(other.end);
        }
        if at < range.end {
            left.push(at..range.end);
        }
    }
    left
}

/// The blocks of the file that lie in sectors which no file can have.
fn taken_from(disk: &Disk, taken: &Taken, claim: &Claim) -> Vec<Range<u64>> {
    let log = disk.geometry.block_log - 9;
    let first = disk.geometry.sector(FsBlock(claim.blocks.start)).0;
    let sectors = first..first + ((claim.blocks.end - claim.blocks.start) << log);
    let parts = taken.within(sectors).map(|part| {
        let start = (part.start - first) >> log;
        let end = (part.end - first).div_ceil(1 << log);
        claim.offset + start..claim.offset + end
    });
    parts.collect()
}

fn state(disk: &Disk, file: &FoundFile, mut lost: Vec<Range<u64>>) -> (State, Vec<Range<u64>>) {
    let map = match (&file.content, file.kind) {
        (_, None) => return (State::Lost, Vec::new()),
        (_, Some(FileType::Directory | FileType::Fifo | FileType::Socket))
        | (Content::Bytes(_) | Content::Device(_), _) => return (State::Whole, Vec::new()),
        (Content::Map(map), Some(FileType::Regular)) => map,
        (Content::None, Some(FileType::Regular)) if file.size == 0 && !file.is_guessed => {
            return (State::Whole, Vec::new());
        }
        _ => return (State::Lost, Vec::new()),
    };
    lost.extend(map.missing.iter().cloned());
    lost.sort_unstable_by_key(|range| range.start);
    let size = file.size;
    let mut losses: Vec<Range<u64>> = Vec::new();
    for range in lost {
        let bytes = |block: u64| block.saturating_mul(1 << disk.geometry.block_log).min(size);
        let (start, end) = (bytes(range.start), bytes(range.end));
        match losses.last_mut() {
            _ if start >= end => {}
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => losses.push(start..end),
        }
    }
    let state = match (losses.is_empty(), file.is_guessed) {
        (false, _) => State::Partly,
        (true, true) => State::Unsized,
        (true, false) => State::Whole,
    };
    (state, losses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_others() {
        let left = without(vec![0..10, 20..30], vec![25..40, 3..5]);
        assert_eq!(left, [0..3, 5..10, 20..25]);
        let taken = Taken(vec![0..4, 10..12, 20..40]);
        assert_eq!(taken.within(3..21).collect::<Vec<_>>(), [3..4, 10..12, 20..21]);
    }
}
