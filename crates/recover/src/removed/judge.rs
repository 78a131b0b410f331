//! What of each file is left: by free space, by claims of other files, by metadata in its blocks.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::units::Lsn;
use undercroft_xfs_format::{Extent, FileType};

use super::clones::Clones;
use super::evidence::Evidence;
use super::{ByNumber, WRITTEN_AFTER};

use crate::claims::{Claim, Life, Owners};
use crate::content::Content;
use crate::disk::Disk;
use crate::found::{FoundFile, State};
use crate::map::{self, Map};

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
        blocks: map::blocks(extent),
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
    claims.truncate(own);
    doubt(evidence, files, claims);
}

/// Blocks of a file in passing could be had by it once those who had them before had given them back, and
/// that was durable: in a later checkpoint. `claims` are those of the files.
fn doubt(evidence: &Evidence, files: &mut [FoundFile], mut claims: Vec<Claim>) {
    if evidence.passages.is_empty() {
        return;
    }
    for claim in &mut claims {
        claim.lsn = files[claim.file].vacated;
    }
    let (own, no_file) = (claims.len(), files.len());
    claims.extend(evidence.passages.iter().map(|passage| Claim {
        blocks: passage.blocks.clone(),
        offset: 0,
        // Before what was given back in the same checkpoint; no other record has this position.
        lsn: passage.lsn.0.saturating_sub(1),
        file: no_file,
        life: None,
    }));
    let owners = Owners::new(&claims);
    for claim in &claims[..own] {
        let state = &mut files[claim.file].state;
        if matches!(state, State::Whole | State::Shared) && !owners.lost(claim).is_empty() {
            *state = State::Likely;
        }
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

fn own_claims(file: &FoundFile, index: usize) -> Vec<Claim> {
    let Content::Map(map) = &file.content else { return Vec::new() };
    let life = file.is_reflinked.then(|| Life {
        changed: file.crtime.max(file.mtime),
        ended: Some(file.removed_at.unwrap_or(file.ctime)),
    });
    let written = map.extents.iter().filter(|extent| !extent.unwritten);
    let claim = |extent: &Extent| Claim {
        blocks: map::blocks(extent),
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
        // Of an extent that was given back to the disk nothing else is left.
        let zeroes = Some(claim.blocks.clone()).filter(|all| evidence.remains.are_zeroes(all));
        let all = others.into_iter().chain(gone).chain(over).chain(unreadable).chain(zeroes);
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
