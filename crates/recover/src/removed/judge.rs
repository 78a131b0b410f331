//! What of each file is left: by free space, by claims of other files, by metadata in its blocks.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::{FsBlock, InodeNumber, Lsn};
use undercroft_xfs_format::{Extent, FileType, InodeFlags2};

use super::ByNumber;
use super::evidence::Evidence;

use crate::claims::{Claim, Life, Owners};
use crate::content::Content;
use crate::disk::Disk;
use crate::found::{FoundFile, State};
use crate::map::{self, Map};
use crate::present::decode;
use crate::trail::MapFork;

/// Gives each file its state.
pub(super) fn judge(disk: &Disk, evidence: &Evidence, files: &mut [FoundFile]) {
    let mut claims: Vec<Claim> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        claims.extend(own_claims(file, index));
    }
    let own = claims.len();
    let present = files.len();
    let by_number = ByNumber::new(files);
    claims.extend(evidence.had.iter().map(|(number, extent, lsn)| Claim {
        blocks: blocks(extent),
        offset: extent.offset.0,
        lsn: lsn.0,
        file: by_number.until(*number, *lsn).unwrap_or(present),
        life: None,
    }));
    let owners = Owners::new(&claims);
    let mut lost: FxHashMap<usize, Vec<Claimed<'_>>> = FxHashMap::default();
    let mut clones = Clones::new(disk, evidence);
    for claim in &claims[..own] {
        let claimed = Claimed {
            claim,
            lost: owners.lost(claim),
            used: evidence.space.used_in(claim.blocks.clone()),
        };
        lost.entry(claim.file).or_default().push(claimed);
    }
    for (index, file) in files.iter_mut().enumerate() {
        let claimed = lost.remove(&index).unwrap_or_default();
        (file.state, file.losses) = match map_of(file) {
            Ok(map) => state(disk, evidence, (file, map), claimed, &mut clones),
            Err(state) => (state, Vec::new()),
        };
    }
}

/// A claim, with what of it is lost.
struct Claimed<'c> {
    claim: &'c Claim,
    /// To other files that are gone, or that had them in between.
    lost: Vec<Range<u64>>,
    /// Blocks that are in use now.
    used: Vec<Range<u64>>,
}

fn blocks(extent: &Extent) -> Range<u64> {
    extent.start.0..block_behind(extent)
}

/// The block behind the last of an extent.
fn block_behind(extent: &Extent) -> u64 {
    extent.start.0 + u64::from(extent.len)
}

fn own_claims(file: &FoundFile, index: usize) -> Vec<Claim> {
    let Content::Map(map) = &file.content else { return Vec::new() };
    let life = file.is_reflinked.then(|| Life {
        changed: file.crtime.max(file.mtime),
        ended: Some(file.removed_at.unwrap_or(file.ctime)),
    });
    let written = map.extents.iter().filter(|extent| !extent.unwritten);
    let claim = |extent: &Extent| Claim {
        blocks: blocks(extent),
        offset: extent.offset.0,
        lsn: file.last_seen,
        file: index,
        life,
    };
    written.map(claim).collect()
}

/// The map of a file; the state of one whose content is not in blocks.
fn map_of(file: &FoundFile) -> Result<&Map, State> {
    match (&file.content, file.kind) {
        // They have no content, and a directory that was removed was empty.
        (Content::Map(_), Some(FileType::Directory))
        | (Content::None, Some(FileType::Directory | FileType::Fifo | FileType::Socket)) => {
            Err(State::Whole)
        }
        (Content::Map(map), _) => Ok(map),
        (Content::Bytes(_), _) if file.is_guessed => Err(State::Unsized),
        (Content::Bytes(_) | Content::Device(_), _) => Err(State::Whole),
        (Content::None, Some(FileType::Regular)) if file.size == 0 && !file.is_guessed => {
            Err(State::Whole)
        }
        (Content::None, _) => Err(State::Lost),
    }
}

/// The state of a file with a map, and the bytes of it that are lost.
fn state(
    disk: &Disk,
    evidence: &Evidence,
    (file, map): (&FoundFile, &Map),
    claimed: Vec<Claimed<'_>>,
    clones: &mut Clones<'_>,
) -> (State, Vec<Range<u64>>) {
    let mut is_shared = false;
    let mut lost: Vec<Range<u64>> = map.missing.clone();
    for Claimed { claim, lost: others, used } in claimed {
        let kept = |part: &Range<u64>| clones.is_clone(file, claim, part);
        let (shared, gone): (Vec<_>, Vec<_>) = used.into_iter().partition(kept);
        is_shared |= !shared.is_empty();
        let over = evidence.remains.metadata_in(claim.blocks.clone());
        let over = over.map(|block| block..block + 1);
        let unreadable = evidence.remains.unreadable_in(claim.blocks.clone());
        let all = others.into_iter().chain(gone).chain(over).chain(unreadable);
        lost.extend(all.map(|part| {
            let start = part.start - claim.blocks.start + claim.offset;
            start..start + (part.end - part.start)
        }));
    }
    if may_be_unwritten(evidence, file) {
        lost.extend(holes(disk, map, file.size));
    }
    let losses = losses(disk, map, file, lost);
    let state = match (losses.is_empty(), file.is_guessed) {
        (false, _) => State::Partly,
        (true, true) => State::Unsized,
        (true, false) if is_shared => State::Shared,
        (true, false) => State::Whole,
    };
    (state, losses)
}

/// Seconds after which a kernel has written what a program wrote: it begins after thirty.
const WRITTEN_AFTER: i64 = 120;

/// Whether the file was removed so soon after its last change that data may never have been written:
/// then holes of it need not be some. An unmount between the two writes everything.
fn may_be_unwritten(evidence: &Evidence, file: &FoundFile) -> bool {
    let changed = file.mtime.max(file.crtime);
    let unmounted = evidence.unmounted_before(Lsn(file.last_seen));
    if unmounted.is_some_and(|time| time >= changed) {
        return false;
    }
    let known = file.removed_at.unwrap_or(file.ctime);
    known.seconds.saturating_sub(changed.seconds) < WRITTEN_AFTER
}

/// The blocks of a file that are not mapped, or not written.
fn holes(disk: &Disk, map: &Map, size: u64) -> Vec<Range<u64>> {
    let end = disk.geometry.blocks_for(size);
    let mut holes = Vec::new();
    let mut at = 0;
    for extent in map.extents.iter().filter(|extent| !extent.unwritten) {
        holes.push(at..extent.offset.0.min(end));
        at = extent.end().0;
    }
    holes.push(at..end);
    holes.retain(|hole| hole.start < hole.end);
    holes
}

/// Blocks of a file as bytes of it, in order, each once; what lies behind its end is no loss.
fn losses(disk: &Disk, map: &Map, file: &FoundFile, mut lost: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let log = disk.geometry.block_log;
    let size = if file.is_guessed { map.end() << log } else { file.size };
    lost.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in lost {
        let start = range.start.saturating_mul(1 << log).min(size);
        let end = range.end.saturating_mul(1 << log).min(size);
        if start >= end {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => out.push(start..end),
        }
    }
    out
}

/// Files that are there and may share blocks, read when one is asked for.
struct Clones<'d> {
    disk: &'d Disk,
    evidence: &'d Evidence,
    extents: Option<Vec<(Extent, Life)>>,
}

impl<'d> Clones<'d> {
    const fn new(disk: &'d Disk, evidence: &'d Evidence) -> Self {
        Self { disk, evidence, extents: None }
    }

    /// Whether a file that is there has these blocks at the same place as the removed one, and was
    /// neither made nor changed since that was removed.
    fn is_clone(&mut self, file: &FoundFile, claim: &Claim, part: &Range<u64>) -> bool {
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
                let is_there = block_behind(extent) > at;
                let same =
                    extent.offset.0.wrapping_sub(extent.start.0) == offset.wrapping_sub(part.start);
                is_there && same && life.meets(other)
            });
            let Some((extent, _)) = found else { return false };
            at = block_behind(extent);
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
