//! One removed file: what it was, and what of it is left.

use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{FileType, InodeCore, InodeFlags2};

use super::evidence::Evidence;
use super::literal;
use crate::attributes;
use crate::content::{self, Content};
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::found::{FoundFile, SizeFrom, State};
use crate::names;
use crate::trail::{Origin, Seen, Trail};

/// All files that are gone.
pub(super) fn all(disk: &Disk, evidence: &Evidence) -> Vec<FoundFile> {
    let mut files: Vec<_> = evidence.trails.iter().collect();
    files.sort_unstable_by_key(|(id, _)| **id);
    files.into_iter().filter_map(|(id, trail)| of_trail(disk, evidence, *id, trail)).collect()
}

fn of_trail(disk: &Disk, evidence: &Evidence, id: FileId, trail: &Trail) -> Option<FoundFile> {
    let seen = trail.core.as_ref();
    let end = trail.end.as_ref();
    let core = seen.map(|seen| &seen.value).or(end.map(|end| &end.core))?;
    let hint = seen.map(|seen| usize::from(seen.value.forkoff) * 8).filter(|place| *place > 0);
    let literal = end.and_then(|end| end.literal.as_deref());
    let stale = literal.and_then(|bytes| names::find_shortform(&disk.geometry, bytes, hint));
    let data_len = hint.or(stale.map(|(place, _)| place));
    let last = seen.filter(|seen| is_last(evidence, seen, trail));
    let seen_kind = seen.and_then(|seen| seen.value.file_type());
    let (kind, content) = match (literal, seen) {
        (Some(literal), _) if last.is_none() => {
            let (kind, content) = literal::guessed(disk, id.number, literal, data_len);
            (seen_kind.or(kind), content)
        }
        (_, Some(seen)) => (seen_kind, content::of_trail(disk, &seen.value, trail, literal)),
        (_, None) => return None,
    };
    let content = with_leaves(disk, evidence, id.number, content);
    let is_guessed = last.is_none() || !is_confirmed(core, &content);
    // A file that the journal saw being made had its attributes there, unless it came and went within a
    // checkpoint. Then what is in its place is of the file that had the number before.
    let is_own = seen.is_none_or(|seen| !evidence.saw_made(&seen.value));
    let stale = stale.map(|(_, fork)| fork).filter(|_| is_own);
    let fork = trail.attr.as_ref().map(|seen| &*seen.value.bytes).or(stale);
    let mut names = fork.map_or(Vec::new(), |fork| names::of_shortform(&disk.geometry, fork));
    if names.is_empty() {
        names = evidence.remains.names.get(&id.number).cloned().unwrap_or_default();
    }
    names.sort();
    names.dedup();
    let (size, size_from) = size(disk, last, trail, &content);
    // The format has none that are longer.
    let size = size.min(i64::MAX as u64);
    Some(FoundFile {
        id,
        kind,
        paths: Vec::new(),
        size,
        size_from,
        removed_at: end.map(|end| end.time),
        uid: core.uid,
        gid: core.gid,
        mode: seen.map(|seen| seen.value.mode & 0o7777),
        mtime: core.mtime,
        attributes: fork.map_or(Vec::new(), attributes::of_shortform),
        state: State::Lost,
        losses: Vec::new(),
        content,
        names,
        links: seen.map_or(0, |seen| seen.value.nlink),
        vacated: trail.vacated.or(seen.map(|seen| seen.lsn)).map_or(0, |lsn| lsn.0),
        last_seen: seen.map_or(0, |seen| seen.lsn.0).max(end.map_or(0, |end| end.lsn.0)),
        is_reflinked: core.flags2.contains(InodeFlags2::REFLINK),
        crtime: core.crtime,
        ctime: core.ctime,
        is_guessed,
    })
}

/// Whether the map is as long as the core says: a tree's blocks may be of an earlier time.
fn is_confirmed(core: &InodeCore, content: &Content) -> bool {
    match content {
        Content::Map(map) => {
            !map.missing.is_empty() || map.extents.len() as u64 == core.data_extents
        }
        Content::None | Content::Bytes(_) | Content::Device(_) => true,
    }
}

/// The size that the free inode still says. A kernel sets that of files to 0.
fn size_left(trail: &Trail) -> Option<u64> {
    trail.end.as_ref().map(|end| end.core.size).filter(|size| *size > 0)
}

/// Whether a copy of an inode is how the file was last. With another size than the free inode it is older,
/// and with another time of the last change of its content, which the free inode keeps: then its blocks may
/// be others. What grew and was removed within one checkpoint has no later copy. Nor has a change the time
/// of which is another if it came within the same tick of the clock: behind a copy's checkpoint, or an
/// unmount, that tick has to be over.
fn is_last(evidence: &Evidence, seen: &Seen<InodeCore>, trail: &Trail) -> bool {
    let core = &seen.value;
    if core.file_type() != Some(FileType::Regular) {
        return true;
    }
    // If another file got the number within the same checkpoint, nothing tells of the end.
    let Some(end) = &trail.end else { return false };
    let is_over = || {
        evidence.time_at(seen.lsn).is_none_or(|time| time > core.mtime)
            || evidence.was_unmounted_between(seen.lsn, end.lsn)
    };
    size_left(trail).is_none_or(|left| left == core.size)
        && end.core.mtime == core.mtime
        && is_over()
}

fn size(
    disk: &Disk,
    last: Option<&Seen<InodeCore>>,
    trail: &Trail,
    content: &Content,
) -> (u64, SizeFrom) {
    if let Some(seen) = last {
        let from = match seen.origin {
            Origin::Journal => SizeFrom::Journal,
            Origin::Chunk => SizeFrom::Inode,
        };
        return (seen.value.size, from);
    }
    if let Some(left) = size_left(trail) {
        return (left, SizeFrom::Inode);
    }
    let bytes = match content {
        Content::Map(map) => map.end() << disk.geometry.block_log,
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::None | Content::Device(_) => 0,
    };
    (bytes, SizeFrom::Blocks)
}

/// The map of a file with what leaves of its tree in free space say of the ranges that it lacks.
fn with_leaves(disk: &Disk, evidence: &Evidence, number: InodeNumber, content: Content) -> Content {
    let Content::Map(mut map) = content else { return content };
    let mut leaves: Vec<_> = evidence.remains.leaves.get(&number).into_iter().flatten().collect();
    // The latest of each range counts.
    leaves.sort_by_key(|(lsn, _)| std::cmp::Reverse(lsn.0));
    for (_, extents) in leaves {
        map.fill(disk, extents);
    }
    map.settle();
    Content::Map(map)
}
