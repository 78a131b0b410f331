//! Clones of removed files: they hold blocks of them as they were.

use std::ops::Range;

use undercroft_xfs_format::units::{FsBlock, InodeNumber};
use undercroft_xfs_format::{Extent, InodeFlags2};

use super::evidence::Evidence;
use crate::claims::{Claim, Life};
use crate::disk::Disk;
use crate::found::FoundFile;
use crate::map;
use crate::present::decode;
use crate::trail::MapFork;

/// Files that are there and may share blocks, read when one is asked for.
pub(super) struct Clones<'d> {
    disk: &'d Disk,
    evidence: &'d Evidence,
    extents: Option<Vec<(Extent, Life)>>,
}

impl<'d> Clones<'d> {
    pub(super) const fn new(disk: &'d Disk, evidence: &'d Evidence) -> Self {
        Self { disk, evidence, extents: None }
    }

    /// Whether a file that is there has these blocks at the same place as the removed one, and was
    /// neither made nor changed since that was removed.
    pub(super) fn is_clone(&mut self, file: &FoundFile, claim: &Claim, part: &Range<u64>) -> bool {
        let Some(life) = claim.life.filter(|life| life.ended.is_some() && !file.is_guessed) else {
            return false;
        };
        let (disk, evidence) = (self.disk, self.evidence);
        let extents = self.extents.get_or_insert_with(|| shared_extents(disk, evidence));
        let offset = part.start - claim.blocks.start + claim.offset;
        // Extents of clones may be cut otherwise: the part is looked for block by block of them.
        let mut at = part.start;
        while at < part.end {
            let behind = extents.partition_point(|(extent, _)| extent.start.0 <= at);
            let mut before = extents[..behind].iter().rev().take(64);
            let found = before.find(|(extent, other)| {
                let is_there = map::blocks(extent).end > at;
                let same =
                    extent.offset.0.wrapping_sub(extent.start.0) == offset.wrapping_sub(part.start);
                is_there && same && life.meets(other)
            });
            let Some((extent, _)) = found else { return false };
            at = map::blocks(extent).end;
        }
        true
    }
}

/// The extents of all files that are there and may share blocks, by their first block.
fn shared_extents(disk: &Disk, evidence: &Evidence) -> Vec<(Extent, Life)> {
    let mut extents = Vec::new();
    for number in &evidence.present.reflinked {
        extents.extend(extents_of(disk, *number).unwrap_or_default());
    }
    extents.sort_unstable_by_key(|(extent, _)| FsBlock(extent.start.0));
    extents
}

fn extents_of(disk: &Disk, number: InodeNumber) -> Option<Vec<(Extent, Life)>> {
    let bytes = disk.inode(number).ok()??;
    let core = decode(disk, number, &bytes)?;
    if !core.flags2.contains(InodeFlags2::REFLINK) {
        return None;
    }
    let life = Life { changed: core.crtime.max(core.mtime), ended: None };
    let fork = bytes.get(core.data_fork(&disk.geometry))?;
    let map = map::of_fork(disk, number, MapFork::data(&core, fork))?;
    Some(map.extents.into_iter().map(|extent| (extent, life)).collect())
}
