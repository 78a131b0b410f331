//! The identity of a volume: its label and its UUID.

use crate::bytes::{be32, put_be32};
use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Incompat, Superblock};
use crate::log;
use crate::ops::superblock::change;
use crate::recovery::write_unmount_record;
use crate::units::{AgNumber, Lsn};
use crate::volume::{LiveOptions, Volume, write_copies};
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, read_exact_at, write_all_at};
use uuid::Uuid;

/// Most bytes of a label.
pub const LABEL_MAX: usize = 12;

/// Offsets in the superblock.
const UUID: usize = 32;
const LABEL: usize = 108;
const INCOMPAT: usize = 216;
const META_UUID: usize = 248;

/// The label of a volume: empty if it has none.
///
/// # Errors
/// The device failed.
pub fn label(volume: &Volume) -> Result<Vec<u8>, Error> {
    Ok(current(volume)?.label_bytes().to_vec())
}

/// Refuses what cannot be a label.
///
/// # Errors
/// It is too long, or holds a zero byte.
pub fn check_label(label: &[u8]) -> Result<(), Error> {
    if label.len() <= LABEL_MAX && !label.contains(&0) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "a label has at most {LABEL_MAX} bytes and none of them is zero; this one has {}",
        label.len()
    )))
}

/// Gives a volume that is open for change another label, none if `label` is empty, and makes it
/// durable. The copies of the superblock follow; a crash may leave some with the old label until the
/// volume is opened for changes again.
///
/// # Errors
/// The label is too long or holds a zero byte; the volume cannot be changed; the device failed.
pub fn set_label(volume: &Volume, label: &[u8]) -> Result<(), Error> {
    check_label(label)?;
    let mut bytes = [0; LABEL_MAX];
    bytes[..label.len()].copy_from_slice(label);
    let mut trans = volume.begin()?;
    change(&mut trans, |edit| {
        edit.region(LABEL..LABEL + LABEL_MAX).copy_from_slice(&bytes);
    })?;
    trans.commit(&mut [])?;
    volume.sync()?;
    write_copies(volume.cache().device().as_ref(), &current(volume)?)
}

/// The superblock with all changes so far.
fn current(volume: &Volume) -> Result<Superblock, Error> {
    let buffer = volume.header(AgNumber(0), 0, BufferKind::Superblock)?;
    let mut bytes = buffer.read().to_vec();
    // In memory it need not have its checksum yet.
    stamp(BufferKind::Superblock, &mut bytes, Lsn(0), volume.geometry());
    Ok(Superblock::decode(&bytes)?)
}

/// Gives the volume on `device`, which must not be open, another UUID; its journal is replayed
/// first. Metadata goes on to carry the UUID of its making, which the superblock remembers; with
/// that one itself, the volume is as it was made.
///
/// Records of the journal carry the UUID as well. So its last one is followed by one that belongs to
/// no volume, which suits both superblocks, then the superblock is written, then a record of the new
/// UUID: an interruption leaves the old volume or the new one.
///
/// # Errors
/// The volume cannot be changed, as for [`Volume::open_live`]; the device failed.
pub fn set_uuid(device: &Arc<dyn BlockDevice>, uuid: Uuid) -> Result<(), Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    Volume::open_reserved(device.clone(), &LiveOptions::default())?.close()?;
    let volume = Volume::open(Arc::clone(device))?;
    let (old, geometry) = (volume.superblock(), volume.geometry());
    let neutral = write_unmount_record(
        device,
        old,
        &log::ends(volume.cache().device(), volume.geometry())?,
        Uuid::nil(),
    )?;
    flush(device.as_ref())?;
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device.as_ref(), Sector(0), &mut bytes)?;
    bytes[UUID..UUID + 16].copy_from_slice(uuid.as_bytes());
    let separate = uuid != geometry.meta_uuid;
    let mut incompat = Incompat::from_bits_retain(be32(&bytes, INCOMPAT));
    incompat.set(Incompat::META_UUID, separate);
    put_be32(&mut bytes, INCOMPAT, incompat.bits());
    let remembered = if separate { geometry.meta_uuid } else { Uuid::nil() };
    bytes[META_UUID..META_UUID + 16].copy_from_slice(remembered.as_bytes());
    stamp(BufferKind::Superblock, &mut bytes, old.lsn, geometry);
    let new = Superblock::decode(&bytes)?;
    write_all_at(device.as_ref(), Sector(0), &bytes)?;
    flush(device.as_ref())?;
    write_unmount_record(device, &new, &neutral, uuid)?;
    flush(device.as_ref())?;
    write_copies(device.as_ref(), &new)
}
