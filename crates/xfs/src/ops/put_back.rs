//! Removed files put back: new inodes get the blocks that files had, which are free and hold their data.
//!
//! Blocks are [spared](Volume::spare) first, so that nothing is written over them until each file has its
//! own. A file comes back in one transaction, with its name. One in more pieces than the journal has room for
//! begins without a name, on the list of unlinked inodes. Each step maps some pieces, and the last gives it its
//! name. A cut before that leaves an inode without a name, which recovery frees: the blocks are free again, and
//! hold what they held.

use super::create::{NewInode, enter, free_slot, new_inode};
use super::locks::{self, Locked};
use super::make::{self, with_room};
use super::unlink::affected;
use super::xattr::check_attributes;
use super::{NamedValue, link, set_attributes};
use crate::alloc;
use crate::bmap;
use crate::dir;
use crate::error::Error;
use crate::file::{MAX_FILE_SIZE, OpenFile};
use crate::format::{Extent, FileType, InodeFlags};
use crate::inode::{ForkKind, InodeGuard, InodeState};
use crate::inode_allocation;
use crate::inode_allocation::unlinked;
use crate::trans::Transaction;
use crate::units::{AgNumber, FileBlock, FsBlock, InodeNumber};
use crate::volume::Volume;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Extents that one transaction maps at least, and at most.
const STEP: RangeInclusive<usize> = 16..=1024;

/// Blocks of the trees of groups that the taking of an extent may change, beside those that others change:
/// leaves of free space by place and by length, and of reverse mappings.
const LEAVES: usize = 3;

/// Bytes of a block in the journal, beside its own.
const OVERHEAD: usize = 128;

/// A removed file, as it was and is to be again.
#[derive(Clone, Debug)]
pub struct OldFile<'a> {
    /// Type, mode, owner, times, target and device.
    pub new: NewInode<'a>,
    /// Bytes of a regular file, 0 for all others.
    pub size: u64,
    /// Where the data of a regular file is, by ascending places in the file; holes between.
    pub extents: &'a [Extent],
    /// Attributes under their full names.
    pub attributes: &'a [NamedValue],
}

/// Makes a removed file again, as `name` in the directory `parent`, with the blocks that it had. The
/// directory hands nothing down but its project. The time of the change of both is that of `old`.
///
/// # Errors
/// The name exists; a block is in use; something of `old` cannot be stored; no space for an inode or a name
/// beside what is [spared](Volume::spare). Nothing is changed then. A damaged structure; the device failed.
pub fn put_back(
    volume: &Arc<Volume>,
    parent: InodeNumber,
    name: &[u8],
    old: &OldFile<'_>,
) -> Result<InodeNumber, Error> {
    dir::check_name(name)?;
    check(volume, old)?;
    with_room(volume, || {
        if old.extents.len() <= step(volume) {
            let take = |inode: &mut InodeGuard| inode.number;
            return first_step(volume, parent, Some(name), old, take);
        }
        in_steps(volume, parent, name, old)
    })
}

/// Extents that one transaction maps: what half of the journal has room for.
fn step(volume: &Volume) -> usize {
    let room = (volume.log_limit() / 2).saturating_sub(volume.longest_log_bytes());
    (room / log_bytes_per_extent(volume)).clamp(*STEP.start(), *STEP.end())
}

fn log_bytes_per_extent(volume: &Volume) -> usize {
    LEAVES * (volume.geometry().block_size() + OVERHEAD)
}

/// A transaction that maps so many extents, and makes an inode with its name.
fn begin(volume: &Volume, extents: usize) -> Result<Transaction<'_>, Error> {
    let bytes = volume.longest_log_bytes() + extents * log_bytes_per_extent(volume);
    volume.begin_sized(bytes.min(volume.log_limit()))
}

/// Finds out whether the file can be stored as it is.
fn check(volume: &Volume, old: &OldFile<'_>) -> Result<(), Error> {
    let kind = make::check(&old.new)?;
    check_attributes(old.attributes.iter().map(|(name, value)| (&name[..], &value[..])))?;
    let invalid = |what: String| Err(Error::Invalid(what));
    if kind != FileType::Regular && (old.size > 0 || !old.extents.is_empty()) {
        return invalid("only a regular file has a size and extents".into());
    }
    if old.size > MAX_FILE_SIZE {
        return Err(Error::TooLarge(format!("a file of {} bytes", old.size)));
    }
    let end = FileBlock(volume.geometry().blocks_for(old.size));
    let mut at = FileBlock(0);
    let mut blocks: Vec<(FsBlock, u32)> = Vec::with_capacity(old.extents.len());
    for extent in old.extents {
        let is_sound = extent.validate().is_ok()
            && !extent.unwritten
            && extent.offset >= at
            && extent.end() <= end
            && volume.geometry().valid_extent(extent.start, extent.len.into());
        if !is_sound {
            return invalid(format!("{extent:?} cannot be one of a file of {} bytes", old.size));
        }
        at = extent.end();
        blocks.push((extent.start, extent.len));
    }
    blocks.sort_unstable();
    let overlap = blocks.windows(2).find(|pair| pair[0].0.0 + u64::from(pair[0].1) > pair[1].0.0);
    overlap.map_or(Ok(()), |pair| invalid(format!("block {} is there twice", pair[1].0)))
}

/// A file of many extents: without a name until it has all of them.
fn in_steps(
    volume: &Arc<Volume>,
    parent: InodeNumber,
    name: &[u8],
    old: &OldFile<'_>,
) -> Result<InodeNumber, Error> {
    // Nothing is begun for a name that cannot be given.
    let directory = volume.inode(parent)?;
    if super::lookup(volume, &directory.read(), name)?.is_some() {
        return Err(Error::Exists(super::path_text(name)));
    }
    // It is freed if a step fails.
    let take = |inode: &mut InodeGuard| OpenFile::of(volume, inode);
    let file = first_step(volume, parent, None, old, take)?;
    let number = file.number();
    let done = other_steps(volume, number, old)
        .and_then(|()| link(volume, number, parent, name, old.new.times.change));
    file.close()?;
    if done.is_err() {
        // Its blocks are free again, and wanted as before.
        let blocks = old.extents.iter().map(|it| it.start..FsBlock(it.start.0 + u64::from(it.len)));
        volume.spare(&blocks.collect::<Vec<_>>(), [])?;
    }
    done.map(|()| number)
}

/// Gives a file the extents behind the first, and its size.
fn other_steps(volume: &Volume, number: InodeNumber, old: &OldFile<'_>) -> Result<(), Error> {
    for extents in old.extents[step(volume)..].chunks(step(volume)) {
        let mut trans = begin(volume, extents.len())?;
        let mut inode = volume.lock_inode_in_order(number)?;
        trans.reserve(blocks_for(&trans, extents))?;
        trans.lock_groups(groups(volume, extents))?;
        let places: Vec<_> = extents.iter().map(|extent| extent.offset).collect();
        bmap::prepare(&mut trans, &inode, ForkKind::Data, &[], &places, extents.len() as u64)?;
        check_free(&mut trans, extents)?;
        trans.begin_changes();
        take_over(&mut trans, &mut inode, extents)?;
        if extents.last() == old.extents.last() {
            inode.core.size = old.size;
        }
        trans.commit(&mut [&mut inode])?;
    }
    Ok(())
}

/// Makes the inode with the first extents: with its name if that is given, and then with its size; else on the
/// list of unlinked inodes. `take` is given it while it is locked.
fn first_step<T>(
    volume: &Volume,
    parent: InodeNumber,
    name: Option<&[u8]>,
    old: &OldFile<'_>,
    take: impl Fn(&mut InodeGuard) -> T,
) -> Result<T, Error> {
    let kind = old.new.file_type()?;
    let extents = &old.extents[..old.extents.len().min(step(volume))];
    let mut trans = begin(volume, extents.len())?;
    let mut inodes = Locked::new(volume, &[parent])?;
    let directory = inodes.get(parent);
    locks::expect_directory(directory)?;
    directory.expect_mutable(false)?;
    let slot = name.map(|name| free_slot(&mut trans, directory, name)).transpose()?;
    let needed = make::worst_case(&trans, &old.new, old.attributes);
    trans.reserve(needed + blocks_for(&trans, extents))?;
    trans.lock_groups(groups(volume, extents).chain(affected(volume, directory)?))?;
    check_free(&mut trans, extents)?;
    let is_directory = kind == FileType::Directory;
    let Some(number) = inode_allocation::find(&mut trans, Some(parent), is_directory)? else {
        return Err(inode_allocation::no_room(trans));
    };
    trans.begin_changes();
    let mut inode = match slot.zip(name) {
        Some(entry) => enter(&mut trans, directory, entry, &old.new, number)?,
        None => unnamed(&mut trans, directory, &old.new, number)?,
    };
    if directory.core.flags.contains(InodeFlags::PROJINHERIT) {
        inode.core.project = directory.core.project;
        inode.core.flags.set(InodeFlags::PROJINHERIT, is_directory);
    }
    let attributes = old.attributes.iter().map(|(name, value)| (&name[..], &value[..]));
    set_attributes(&mut trans, &mut inode, attributes)?;
    take_over(&mut trans, &mut inode, extents)?;
    if name.is_some() {
        if kind == FileType::Regular {
            inode.core.size = old.size;
        }
        directory.set_modified(old.new.times.change);
    }
    trans.commit(&mut [directory, &mut inode])?;
    Ok(take(&mut inode))
}

/// A new inode on the list of those without a name.
fn unnamed(
    trans: &mut Transaction<'_>,
    directory: &InodeState,
    new: &NewInode<'_>,
    number: InodeNumber,
) -> Result<InodeGuard, Error> {
    let kind = new.file_type()?;
    let mut inode = new_inode(trans, number, Some(directory.number), kind, new)?;
    inode.core.nlink = 0;
    let (ag, agino) = trans.geometry().split_inode(number);
    trans.in_group(ag, |trans, group| unlinked::insert(trans, group, agino))?;
    let mut inode = trans.volume().insert_inode(inode);
    inode.memory.awaits_name = true;
    Ok(inode)
}

fn groups(volume: &Volume, extents: &[Extent]) -> impl Iterator<Item = AgNumber> {
    extents.iter().map(|extent| volume.geometry().split_block(extent.start).0)
}

/// Blocks that the map of these extents may take.
fn blocks_for(trans: &Transaction<'_>, extents: &[Extent]) -> u64 {
    2 * u64::from(trans.volume().heights().bmap_data) + extents.len() as u64
}

/// Nothing that is free now is taken by others in a transaction that holds the groups.
fn check_free(trans: &mut Transaction<'_>, extents: &[Extent]) -> Result<(), Error> {
    // The trees of a group grow by no more than a block for so many records.
    let growth = extents.len() as u32 / 16;
    extents.iter().try_for_each(|extent| alloc::check_spared(trans, extent, growth))
}

/// Gives a file the blocks of extents.
fn take_over(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    extents: &[Extent],
) -> Result<(), Error> {
    for extent in extents {
        alloc::take_spared(trans, extent)?;
        bmap::map(trans, inode, ForkKind::Data, *extent)?;
    }
    inode.touch();
    Ok(())
}
