//! The choice of a new inode: which group, which chunk, which inode.
//!
//! Policy: docs/algorithms/inodes.md#choice-of-a-group and
//! docs/algorithms/inodes.md#choice-of-an-inode. A directory goes to the next group in turn,
//! everything else to the group of its parent, as close to it as there is a free inode.

use super::chunk::allocate_chunk;
use crate::alloc::SpaceTree;
use crate::btree::{Cursor, Finobt, Inobt, Lookup, overwrite_at};
use crate::error::Error;
use crate::format::{AllocRecord, InodeChunkRecord};
use crate::group::{GroupState, Pick};
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode, AgNumber, InodeNumber};
use std::sync::Arc;

/// Allocates an inode for a child of `parent` (`None`: the root directory).
///
/// # Errors
/// No group has room, a tree is damaged, or the device failed.
pub(crate) fn allocate(
    trans: &mut Transaction<'_>,
    parent: Option<InodeNumber>,
    directory: bool,
) -> Result<InodeNumber, Error> {
    let needed = trans.geometry().chunk_blocks().into();
    let block_size = trans.geometry().block_size();
    find(trans, parent, directory)?.ok_or(Error::NoSpace { needed, block_size })
}

/// As [`allocate`]; `None` if no group has room. The changes until then, of free lists of groups,
/// are complete: the transaction can be committed.
///
/// # Errors
/// A tree is damaged, or the device failed.
pub(crate) fn find(
    trans: &mut Transaction<'_>,
    parent: Option<InodeNumber>,
    directory: bool,
) -> Result<Option<InodeNumber>, Error> {
    let geometry = trans.geometry();
    let start = match parent {
        None => AgNumber(0),
        Some(_) if directory => trans.volume().next_directory_group(),
        Some(parent) => geometry.split_inode(parent).0,
    };
    let count = trans.volume().allocating_groups();
    for wait in [false, true] {
        for step in 0..count {
            let ag = AgNumber((start.0 + step) % count);
            // It is asked again when all others have none.
            if !wait && trans.volume().group_summary(ag).is_without_inodes() {
                continue;
            }
            let near = parent
                .map(|parent| geometry.split_inode(parent))
                .filter(|(parent_ag, _)| *parent_ag == ag)
                .map(|(_, agino)| agino);
            let found = trans.with_group(ag, wait, |trans, group| {
                if group.agi.free_count > 0
                    && let Some(found) = pick(trans, group, near)?
                {
                    return Ok(Some(found));
                }
                if allocate_chunk(trans, group)? {
                    return pick(trans, group, near);
                }
                // Of a live volume space comes back later, when its freeing is durable.
                if !trans.is_live() {
                    group.set_without_inodes();
                }
                Ok(None)
            })?;
            if let Some(Some(agino)) = found {
                return Ok(Some(geometry.inode_number(ag, agino)));
            }
        }
    }
    Ok(None)
}

/// Ends a transaction that [found](find) no room for an inode, and has changed nothing else. Returns
/// why there is none: [`Error::Busy`] if space for one waits for the journal.
pub(crate) fn no_room(trans: Transaction<'_>) -> Error {
    let needed = trans.geometry().chunk_blocks().into();
    let block_size = trans.geometry().block_size();
    let space_waits = trans.space_waits();
    match trans.commit(&mut []) {
        Err(error) => error,
        Ok(()) if space_waits => Error::Busy("space for inodes waits for the journal".into()),
        Ok(()) => Error::NoSpace { needed, block_size },
    }
}

/// Takes a free inode of a group that has one; `None` if there is none in front of a limit, or all are
/// spared.
fn pick(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    near: Option<AgInode>,
) -> Result<Option<AgInode>, Error> {
    let last = group.last_pick(near);
    let pick = match last.filter(|_| !trans.volume().holds_back()) {
        Some(last) => last,
        None => match choose(trans, group, near)? {
            Some(chosen) => chosen,
            None => return Ok(None),
        },
    };
    let Pick { record, in_all, in_free } = pick;
    let index = group.busy.spared().allocatable(&record).trailing_zeros();
    let updated = InodeChunkRecord {
        free: record.free & !(1 << index),
        freecount: record.freecount - 1,
        ..record
    };
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    if !overwrite_at(&mut tree, in_all, &record, &updated)? {
        return Err(group.corrupt("inobt", AgBlock(0), "it disagrees with the finobt"));
    }
    if let Some(place) = in_free {
        let mut tree = SpaceTree::<Finobt>::new(trans, group);
        if updated.freecount == 0 {
            let mut cursor = Cursor::<Finobt>::new();
            cursor.lookup(&mut tree, &record.start, Lookup::Equal)?;
            cursor.delete(&mut tree)?;
        } else if !overwrite_at(&mut tree, place, &record, &updated)? {
            return Err(group.corrupt("finobt", AgBlock(0), "a chunk moved while it was used"));
        }
    }
    group.agi.free_count -= 1;
    // Without that tree the choice depends on more than where chunks are.
    if in_free.is_some() && updated.allocatable() != 0 {
        group.set_last_pick(near, Pick { record: updated, ..pick });
    }
    Ok(Some(AgInode(record.start.0 + index)))
}

/// The chunk to take an inode of, in a group that has a free one; `None` if there is none in front of a
/// bar, or all are spared.
fn choose(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    near: Option<AgInode>,
) -> Result<Option<Pick>, Error> {
    let finobt = trans.geometry().features.finobt();
    let mut with_free = Cursor::<Finobt>::new();
    let mut record = if finobt {
        choose_indexed(trans, group, near, &mut with_free)?
    } else {
        choose_scanning(trans, group, near)?
    };
    if trans.volume().has_allocation_limit()
        && record.is_some_and(|record| !is_usable(trans, group, &record))
    {
        record = first_free(trans, group)?;
        if record.is_none_or(|record| !is_usable(trans, group, &record)) {
            return Ok(None);
        }
    }
    if trans.volume().holds_back()
        && record.is_some_and(|record| group.busy.spared().allocatable(&record) == 0)
    {
        record = first_unspared(trans, group)?;
        if record.is_none() {
            return Ok(None);
        }
    }
    // A damaged tree of chunks with free inodes may name one without.
    let Some(record) = record.filter(|record| record.allocatable() != 0) else {
        return Err(group.corrupt("AGI", AgBlock(0), "free inodes are counted, but none is found"));
    };
    let mut in_free = None;
    if finobt {
        let mut tree = SpaceTree::<Finobt>::new(trans, group);
        if with_free.record(&tree)? != Some(record) {
            with_free.lookup(&mut tree, &record.start, Lookup::Equal)?;
        }
        in_free = with_free.place();
    }
    let mut cursor = Cursor::<Inobt>::new();
    cursor.lookup(&mut SpaceTree::<Inobt>::new(trans, group), &record.start, Lookup::Equal)?;
    let in_all = cursor.place();
    Ok(in_all.map(|in_all| Pick { record, in_all, in_free }))
}

/// Whether all of a chunk, also where its last blocks are missing, lies in front of a limit.
fn is_usable(trans: &Transaction<'_>, group: &GroupState, record: &InodeChunkRecord) -> bool {
    let (start, _) = trans.geometry().inode_block(record.start);
    let window = AllocRecord { start, len: trans.geometry().chunk_blocks() };
    group.busy.in_front_of_limit(window) == window
}

/// The first chunk of a group with a free inode.
fn first_free(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<Option<InodeChunkRecord>, Error> {
    if !trans.geometry().features.finobt() {
        return choose_from(trans, group, AgInode(0));
    }
    let mut tree = SpaceTree::<Finobt>::new(trans, group);
    Cursor::<Finobt>::new().find(&mut tree, &AgInode(0), Lookup::GreaterOrEqual)
}

/// A chunk with a free inode that is not spared: the newest, which has most of them, or the first found.
fn first_unspared(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<Option<InodeChunkRecord>, Error> {
    let (busy, newest) = (Arc::clone(&group.busy), group.agi.newest);
    let is_good = |record: &InodeChunkRecord| busy.spared().allocatable(record) != 0;
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    let mut cursor = Cursor::<Inobt>::new();
    let found = cursor.find(&mut tree, &newest, Lookup::Equal)?;
    if let Some(record) = found.filter(is_good) {
        return Ok(Some(record));
    }
    let mut found = cursor.find(&mut tree, &AgInode(0), Lookup::GreaterOrEqual)?;
    while let Some(record) = found {
        if is_good(&record) {
            return Ok(Some(record));
        }
        found = cursor.next(&mut tree)?;
    }
    Ok(None)
}

/// The chunk with a free inode nearest to the parent, by the tree of such chunks; `cursor` is most
/// often there afterwards.
fn choose_indexed(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    near: Option<AgInode>,
    cursor: &mut Cursor<Finobt>,
) -> Result<Option<InodeChunkRecord>, Error> {
    let newest = group.agi.newest;
    let mut tree = SpaceTree::<Finobt>::new(trans, group);
    let Some(parent) = near else {
        // No parent in this group: the newest chunk, else the first.
        let record = cursor.find(&mut tree, &newest, Lookup::Equal)?;
        return match record {
            Some(record) => Ok(Some(record)),
            None => cursor.find(&mut tree, &AgInode(0), Lookup::GreaterOrEqual),
        };
    };
    let left = cursor.find(&mut tree, &parent, Lookup::LessOrEqual)?;
    if let Some(left) = left
        && parent.0 - left.start.0 < u32::from(InodeChunkRecord::INODES)
    {
        return Ok(Some(left));
    }
    let right = cursor.next(&mut tree)?;
    Ok(match (left, right) {
        (Some(left), Some(right)) => {
            let left_distance = u64::from(parent.0 - left.start.0) + 63;
            let right_distance = u64::from(right.start.0 - parent.0);
            Some(if left_distance > right_distance { right } else { left })
        }
        (left, right) => left.or(right),
    })
}

/// A chunk with a free inode, without such a tree: the newest, the parent's, or the first found.
fn choose_scanning(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    near: Option<AgInode>,
) -> Result<Option<InodeChunkRecord>, Error> {
    let newest = Some(group.agi.newest).filter(|newest| !newest.is_null());
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    let mut cursor = Cursor::<Inobt>::new();
    for hint in [near, newest].into_iter().flatten() {
        let record = cursor.find(&mut tree, &hint, Lookup::LessOrEqual)?;
        if record.is_some_and(|record| record.allocatable() != 0) {
            return Ok(record);
        }
    }
    choose_from(trans, group, AgInode(0))
}

/// The first chunk from an inode on with a free one, without a tree of these.
fn choose_from(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    from: AgInode,
) -> Result<Option<InodeChunkRecord>, Error> {
    let mut tree = SpaceTree::<Inobt>::new(trans, group);
    let mut cursor = Cursor::<Inobt>::new();
    let mut found = cursor.find(&mut tree, &from, Lookup::GreaterOrEqual)?;
    while let Some(record) = found {
        if record.allocatable() != 0 {
            return Ok(Some(record));
        }
        found = cursor.next(&mut tree)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FileType, Timestamp};
    use crate::mkfs::{self, MkfsOptions};
    use crate::ops::{self, NewInode};
    use crate::volume::Volume;
    use undercroft_block::{BlockDevice, MemoryDevice};
    use uuid::Uuid;

    /// Creates a file in the root directory; the group that it is in.
    fn create(volume: &Volume, name: &[u8]) -> AgNumber {
        let mut trans = volume.begin().unwrap();
        let mut root = volume.lock_inode(volume.geometry().root_inode).unwrap();
        let new = NewInode::new(FileType::Regular, 0o644);
        let mut inode = ops::create(&mut trans, &mut root, name, &new).unwrap();
        let group = volume.geometry().split_inode(inode.number).0;
        trans.commit(&mut [&mut root, &mut inode]).unwrap();
        group
    }

    #[test]
    fn a_group_without_inodes_is_passed_by_until_one_is_free() {
        let size = 64 << 20;
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
        let options = MkfsOptions {
            ag_count: Some(2),
            inode_size: 2048,
            ..MkfsOptions::new(size, Uuid::from_u128(24))
        };
        let root = NewInode::new(FileType::Directory, 0o755);
        let volume = mkfs::begin(&device, mkfs::plan(&options).unwrap(), &root).unwrap();
        let first = AgNumber(0);
        let is_passed_by = || volume.group_summary(first).is_without_inodes();
        let mut names = (0_u32..).map(|name| name.to_string().into_bytes());
        assert_eq!(create(&volume, b"first"), first);
        while create(&volume, &names.next().unwrap()) == first {
            assert!(!is_passed_by());
        }
        assert!(is_passed_by());
        assert_ne!(create(&volume, b"other"), first);
        let root = volume.geometry().root_inode;
        ops::unlink(&volume, root, b"first", Timestamp::default()).unwrap();
        assert!(!is_passed_by());
        assert_eq!(create(&volume, b"again"), first);
    }

    /// Creates a file in `parent`; its inode.
    fn create_in(volume: &Volume, parent: InodeNumber, name: &str) -> InodeNumber {
        let mut trans = volume.begin().unwrap();
        let mut parent = volume.lock_inode(parent).unwrap();
        let new = NewInode::new(FileType::Regular, 0o644);
        let mut inode = ops::create(&mut trans, &mut parent, name.as_bytes(), &new).unwrap();
        let number = inode.number;
        trans.commit(&mut [&mut parent, &mut inode]).unwrap();
        number
    }

    /// A volume of one group with two directories that are far apart.
    fn volume_with_directories() -> (Volume, [InodeNumber; 2]) {
        let size = 64 << 20;
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(size));
        let options =
            MkfsOptions { ag_count: Some(1), ..MkfsOptions::new(size, Uuid::from_u128(24)) };
        let root = NewInode::new(FileType::Directory, 0o755);
        let volume = mkfs::begin(&device, mkfs::plan(&options).unwrap(), &root).unwrap();
        let root = volume.geometry().root_inode;
        for name in 0..300 {
            create_in(&volume, root, &name.to_string());
        }
        let other = ops::make(&volume, root, b"other", &NewInode::new(FileType::Directory, 0o755));
        (volume, [root, other.unwrap()])
    }

    #[test]
    fn an_inode_that_is_free_nearer_to_the_parent_comes_first() {
        let (volume, [root, other]) = volume_with_directories();
        let freed = ops::lookup(&volume, &volume.inode(root).unwrap().read(), b"7").unwrap();
        let freed = freed.unwrap();
        let behind = create_in(&volume, root, "behind");
        assert!(behind.0 > freed.0 + 64, "{behind} is no chunk away from {freed}");
        ops::unlink(&volume, root, b"7", Timestamp::default()).unwrap();
        assert_eq!(create_in(&volume, other, "a"), InodeNumber(behind.0 + 1));
        assert_eq!(create_in(&volume, root, "b"), freed);
        assert_eq!(create_in(&volume, root, "c"), InodeNumber(behind.0 + 2));
    }

    #[test]
    fn the_chunk_of_the_last_inode_is_what_a_search_would_find() {
        let (with, [root, other]) = volume_with_directories();
        let (without, _) = volume_with_directories();
        let forget = || {
            let mut trans = without.begin().unwrap();
            let forget = |_: &mut Transaction<'_>, group: &mut GroupState| {
                group.forget_pick();
                Ok(())
            };
            trans.in_group(AgNumber(0), forget).unwrap();
            trans.commit(&mut []).unwrap();
        };
        let mut names: Vec<_> = (0..300).map(|name| (root, name.to_string())).collect();
        let mut random = 24_u64;
        for step in 0..2000 {
            random = crate::bytes::mix64(random.wrapping_add(step));
            // Runs of creations, and of removals.
            if random % 64 < 48 || names.is_empty() {
                let parent = if step / 50 % 2 == 0 { root } else { other };
                let name = format!("new {step}");
                forget();
                let number = create_in(&without, parent, &name);
                assert_eq!(create_in(&with, parent, &name), number, "step {step}");
                names.push((parent, name));
            } else {
                let (parent, name) = names.swap_remove((random >> 32) as usize % names.len());
                for volume in [&with, &without] {
                    ops::unlink(volume, parent, name.as_bytes(), Timestamp::default()).unwrap();
                }
            }
        }
    }
}
