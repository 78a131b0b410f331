//! An inode given a new number, with all that names it, in one transaction.

use super::children;
use super::owned::Owned;
use super::share::Share;
use crate::alloc;
use crate::bmap::{self, ForkWriter};
use crate::dir::{self, Entry};
use crate::error::Error;
use crate::file::when_free;
use crate::format::{Extent, FileType};
use crate::inode::{Fork, ForkContent, ForkKind, InodeGuard, InodeState};
use crate::inode_allocation;
use crate::maintain::shrink::destination::{self, Wanted};
use crate::maintain::shrink::file_block;
use crate::maintain::shrink::size::Size;
use crate::ops::{self, Parent};
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Offsets of the numbers of quota files in the superblock: of users, groups, projects.
const USER_QUOTA: usize = 160;
const GROUP_QUOTA: usize = 168;
const PROJECT_QUOTA: usize = 232;

/// Gives an inode with these names a number in what stays; returns it.
///
/// # Errors
/// Other names lead to it, or none; damage; no space, or the journal is too small; the device failed.
pub(super) fn renumber(
    volume: &Volume,
    size: Size,
    number: InodeNumber,
    names: &[Parent],
) -> Result<InodeNumber, Error> {
    let mut names = names.to_vec();
    names.sort_unstable_by(|a, b| (a.directory, &a.name).cmp(&(b.directory, &b.name)));
    let bytes = {
        let inode = volume.inode(number).map_err(Error::into_damage)?;
        let inode = inode.read();
        expect_all_names(volume, &inode, &names)?;
        let owned = Owned::of(volume, &inode)?;
        Share::of(volume, &inode, &owned, &names)?.0
    };
    if bytes > volume.log_limit() {
        return Err(Error::Invalid(format!(
            "a new number for inode {number} needs {bytes} bytes of the journal at once, which has \
             room for {}: it has too many names or children; the volume is sound",
            volume.log_limit()
        )));
    }
    let bytes = bytes.max(volume.longest_log_bytes());
    when_free(volume, || step(volume, size, number, &names, bytes))
}

/// Fails unless an inode has as many names as it counts.
pub(super) fn expect_all_names(
    volume: &Volume,
    inode: &InodeState,
    names: &[Parent],
) -> Result<(), Error> {
    let expected = match inode.file_type() {
        FileType::Directory => 1,
        _ if super::is_quota_file(volume, inode.number) => 0,
        _ => inode.core.nlink as usize,
    };
    if names.len() == expected {
        return Ok(());
    }
    let what = format!("{} names lead to it, and {expected} should", names.len());
    Err(Error::Inode { inode: inode.number, what })
}

/// The superblock's numbers of quota files, with their offsets.
pub(super) fn quota_fields(volume: &Volume) -> [(usize, InodeNumber); 3] {
    let superblock = volume.superblock();
    [
        (USER_QUOTA, superblock.user_quota_inode),
        (GROUP_QUOTA, superblock.group_quota_inode),
        (PROJECT_QUOTA, superblock.project_quota_inode),
    ]
}

fn step(
    volume: &Volume,
    size: Size,
    number: InodeNumber,
    names: &[Parent],
    bytes: usize,
) -> Result<InodeNumber, Error> {
    let mut trans = volume.begin_sized(bytes)?;
    let mut old = volume.lock_inode(number)?;
    let owned = Owned::of(volume, &old)?;
    let values = match find_places(&mut trans, size, &old, &owned.values) {
        Ok(values) => values,
        Err(error) => {
            // Free lists may have changed.
            trans.commit(&mut [])?;
            return Err(error);
        }
    };
    let is_directory = old.file_type() == FileType::Directory;
    let near = names.first().map_or(volume.geometry().root_inode, |name| name.directory);
    let Some(target) = inode_allocation::find(&mut trans, Some(near), is_directory)? else {
        give_back(&mut trans, &values)?;
        let what =
            "what stays has no room for more inodes; the volume is sound, and has its old size";
        return Err(match inode_allocation::no_room(trans) {
            Error::NoSpace { .. } => Error::Full(what.into()),
            other => other,
        });
    };
    trans.begin_changes();
    let mut new = take_over(&mut old, target);
    owned.transfer(&mut trans, &new, number)?;
    for (from, to) in owned.values.iter().zip(values) {
        file_block::write_value(&mut trans, from, &to, target)?;
        bmap::relocate(&mut trans, &mut new, ForkKind::Attr, *from, to)?;
    }
    if is_directory {
        if !matches!(new.data.content, ForkContent::Local(_)) {
            let entry = Entry { inode: target, ftype: FileType::Directory.into() };
            dir::replace(&mut ForkWriter::new(&mut trans, &mut new, ForkKind::Data), b".", entry)?;
        }
        children::follow(&mut trans, &new, number)?;
    }
    point_names(&mut trans, &new, number, names)?;
    for (offset, file) in quota_fields(volume) {
        if file == number {
            ops::change_superblock(&mut trans, |edit| edit.put_be64(offset, target.0))?;
        }
    }
    inode_allocation::free(&mut trans, &mut old)?;
    let mut new = volume.insert_inode(new);
    trans.commit(&mut [&mut new, &mut old])?;
    Ok(target)
}

/// Moves core and forks to another number; the old inode has no blocks from then on.
fn take_over(old: &mut InodeGuard, target: InodeNumber) -> InodeState {
    let mut core = old.core.clone();
    core.number = target;
    let data = std::mem::replace(&mut old.data, Fork::empty());
    let attr = old.attr.take();
    old.core.nblocks = 0;
    InodeState::new(core, data, attr)
}

/// Takes space for values of attributes; all of them, or none.
fn find_places(
    trans: &mut Transaction<'_>,
    size: Size,
    inode: &InodeState,
    values: &[Extent],
) -> Result<Vec<Extent>, Error> {
    let mut found = Vec::with_capacity(values.len());
    let kind = ForkKind::Attr;
    for value in values {
        bmap::prepare(trans, inode, kind, &[value.start], &[value.offset, value.end()], 2)?;
        let wanted = Wanted { kind, min_len: 1, unlogged: true };
        match destination::find(trans, inode, size, value, wanted) {
            Ok(place) => found.push(place),
            Err(error) => {
                give_back(trans, &found)?;
                return Err(error);
            }
        }
    }
    Ok(found)
}

/// Gives back space that was just taken.
fn give_back(trans: &mut Transaction<'_>, places: &[Extent]) -> Result<(), Error> {
    for place in places {
        let (ag, start) = trans.geometry().split_block(place.start);
        trans.in_group(ag, |trans, group| {
            alloc::free_in_group(trans, group, start, place.len, None)
        })?;
    }
    Ok(())
}

/// Makes the names of the inode `old`, sorted by directory, lead to `new`.
fn point_names(
    trans: &mut Transaction<'_>,
    new: &InodeState,
    old: InodeNumber,
    names: &[Parent],
) -> Result<(), Error> {
    let entry = Entry { inode: new.number, ftype: new.file_type().into() };
    for names in names.chunk_by(|a, b| a.directory == b.directory) {
        let mut parent = trans.volume().lock_inode(names[0].directory)?;
        let number = parent.number;
        for Parent { name, .. } in names {
            let mut fork = ForkWriter::new(trans, &mut parent, ForkKind::Data);
            let before = dir::replace(&mut fork, name, entry)?;
            if before.is_none_or(|before| before.inode != old) {
                let name = String::from_utf8_lossy(name);
                let what = format!("its entry {name:?} does not lead to inode {old}");
                return Err(Error::Inode { inode: number, what });
            }
        }
        parent.store(trans)?;
    }
    Ok(())
}
