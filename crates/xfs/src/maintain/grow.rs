//! A volume made larger on a device that is larger than the volume.
//!
//! New groups are written behind the end of the volume, and flushed, then the copies of the
//! superblock; then one transaction lets the last group grow to its full length and the superblock
//! know of all of it. So a crash leaves the old volume or the new one. The copies come first, as
//! `xfs_repair` takes the size from them: what is written to the larger volume is never behind it.

use crate::alloc;
use crate::cache::{BufferRef, MetaBuffer, stamp};
use crate::error::Error;
use crate::format::{BufferKind, Superblock};
use crate::maintain::least_last_group;
use crate::mkfs::ag_static;
use crate::ops::superblock;
use crate::units::{AgBlock, AgNumber, Lsn};
use crate::volume::{LiveOptions, Volume, write_copies};
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{Batch, Bio, BlockDevice, Buffer, Plug, Reserved, flush};

/// Offset of the length in both headers of a group.
const LENGTH: usize = 12;

/// Offsets of what changes in the superblock.
const BLOCKS: usize = 8;
const AG_COUNT: usize = 88;
const FREE_BLOCKS: usize = 144;

/// Sizes of a volume before and after it grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Blocks before.
    pub blocks_before: u64,
    /// Blocks now.
    pub blocks: u64,
    /// Groups before.
    pub groups_before: u32,
    /// Groups now.
    pub groups: u32,
}

impl Growth {
    const fn between(old: &Superblock, new: &Superblock) -> Self {
        Self {
            blocks_before: old.blocks,
            blocks: new.blocks,
            groups_before: old.ag_count,
            groups: new.ag_count,
        }
    }
}

/// What [`grow`] would do on a device that is long enough.
///
/// # Errors
/// The volume would become smaller, or too large.
pub fn growth(volume: &Volume, size: u64) -> Result<Growth, Error> {
    let old = volume.superblock();
    let new = plan(old, size, u64::MAX)?;
    Ok(Growth::between(old, &new))
}

/// Makes the volume on `device`, which must not be open, `size` bytes long; without a size, as long
/// as the device. The rest behind the last whole block is not used, nor is one behind whole groups that
/// is too short for a group: less than 64 blocks or 128 KiB. A volume that has its size already stays as it is. What an interrupted change of its
/// size left is completed first.
///
/// # Errors
/// The device is shorter than that; the volume would become smaller; it cannot be changed, as for
/// [`Volume::open_live`]; it is damaged; the device failed.
pub fn grow(device: &Arc<dyn BlockDevice>, size: Option<u64>) -> Result<Growth, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    let capacity = device.capacity().to_bytes().unwrap_or(u64::MAX);
    let plan = |old: &Volume| plan(old.superblock(), size.unwrap_or(capacity), capacity);
    plan(&Volume::open(Arc::clone(device))?)?;
    // Its journal is replayed by that, if there is something to replay.
    Volume::open_reserved(device.clone(), &LiveOptions::default())?.close()?;
    let before = Volume::open(Arc::clone(device))?;
    let (old, new) = (before.superblock(), plan(&before)?);
    if new.blocks == old.blocks {
        return Ok(Growth::between(old, &new));
    }
    let (last, groups) = (AgNumber(old.ag_count - 1), old.ag_count..new.ag_count);
    let volume = Volume::create(Arc::clone(device), new.clone());
    let volume = volume.into_live(
        &crate::log::ends(before.cache().device(), before.geometry())?,
        &LiveOptions::default(),
    )?;
    write_groups(&volume, groups)?;
    let headers = longer_headers(&before, &volume, last)?;
    let from = before.geometry().ag_length(last);
    let added = volume.geometry().ag_length(last) - from;
    let free_blocks = volume.counters()?.free_blocks + u64::from(added);
    write_copies(device.as_ref(), &Superblock { free_blocks, ..new.clone() })?;
    let mut trans = volume.begin()?;
    if added > 0 {
        for header in &headers {
            let length = volume.geometry().ag_length(last);
            trans.edit(header).edit().put_be32(LENGTH, length);
        }
        trans.with_group(last, true, |trans, group| {
            alloc::free_in_group(trans, group, AgBlock(from), added, None)
        })?;
    }
    superblock::change(&mut trans, |edit| {
        edit.put_be64(BLOCKS, new.blocks);
        edit.put_be32(AG_COUNT, new.ag_count);
        edit.put_be64(FREE_BLOCKS, free_blocks);
    })?;
    trans.commit(&mut [])?;
    volume.close()?;
    Ok(Growth::between(old, &new))
}

/// The superblock of the larger volume.
fn plan(old: &Superblock, size: u64, capacity: u64) -> Result<Superblock, Error> {
    if size > capacity {
        let what = format!("the device has {capacity} bytes, too few for a volume of {size}");
        return Err(Error::Invalid(what));
    }
    let group = u64::from(old.ag_blocks);
    let mut blocks = size >> old.block_log;
    let rest = blocks % group;
    let is_new = blocks / group >= u64::from(old.ag_count);
    if is_new && rest < u64::from(least_last_group(old.block_log)) {
        blocks -= rest;
    }
    if blocks < old.blocks {
        let has = old.blocks;
        let what = format!(
            "the volume has {has} blocks and cannot shrink by growing; the size asked for has \
             {blocks} blocks"
        );
        return Err(Error::Invalid(what));
    }
    let ag_count = u32::try_from(blocks.div_ceil(group))
        .map_err(|_| Error::Invalid(format!("{size} bytes make more than 2^32 groups")))?;
    let new = Superblock { blocks, ag_count, ..old.clone() };
    let mut bytes = vec![0; 1 << new.sector_log];
    new.encode(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, Lsn(0), &new.geometry());
    Superblock::decode(&bytes).map_err(|error| Error::Invalid(error.to_string()))
}

/// Writes the new groups, and waits until they are durable.
fn write_groups(volume: &Volume, groups: Range<u32>) -> Result<(), Error> {
    let device = volume.cache().device();
    let (plug, writes) = (Plug::new(device), Batch::new());
    for ag in groups.map(AgNumber) {
        for mut block in ag_static(volume.superblock(), ag) {
            stamp(block.kind, &mut block.bytes, Lsn(0), volume.geometry());
            let bio = Bio::write(block.sector, Buffer::copy_of(&block.bytes));
            plug.submit(bio.in_batch(&writes));
        }
    }
    plug.flush();
    writes.wait()?;
    Ok(flush(device.as_ref())?)
}

/// The two headers of a group with its new length, in the cache of the larger volume: to that one
/// those on the device would look damaged.
fn longer_headers(before: &Volume, volume: &Volume, ag: AgNumber) -> Result<Vec<BufferRef>, Error> {
    // They are checked when the group is loaded.
    drop(before.lock_group(ag, true)?);
    let length = volume.geometry().ag_length(ag).to_be_bytes();
    let longer = |(index, kind)| {
        let old = before.header(ag, index, kind)?;
        let mut bytes = old.read().to_vec();
        bytes[LENGTH..LENGTH + length.len()].copy_from_slice(&length);
        let header = MetaBuffer::new(old.address().clone(), kind, bytes);
        volume.cache().admit(&header);
        Ok(header)
    };
    [(1, BufferKind::Agf), (2, BufferKind::Agi)].into_iter().map(longer).collect()
}
