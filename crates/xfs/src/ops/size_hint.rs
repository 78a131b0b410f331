//! Hints on the size of extents, as kernels keep them in inodes.

use super::locks::Locked;
use crate::error::Error;
use crate::format::{FileType, InodeFlags, InodeFlags2, Timestamp};
use crate::inode::InodeState;
use crate::inode::MAX_EXTENT_LEN;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Hints in bytes, multiples of the block size; 0 takes a hint away, `None` leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeHints {
    /// New space of a file is taken in multiples of this.
    pub extent: Option<u64>,
    /// Shared blocks are copied in multiples of this, before one of them is changed.
    pub copy: Option<u64>,
}

/// Sets the hints of a file, or the hints that a directory hands down to files created in it.
///
/// # Errors
/// Something else than a file or directory; a hint that is no multiple of the block size or that
/// no group of the volume could serve; the file has space already, or is immutable; the device
/// failed.
pub fn set_size_hints(
    volume: &Volume,
    number: InodeNumber,
    hints: &SizeHints,
    now: Timestamp,
) -> Result<(), Error> {
    let mut trans = volume.begin()?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    let kind = inode.core.file_type();
    let is_directory = kind == Some(FileType::Directory);
    if !is_directory && kind != Some(FileType::Regular) {
        return Err(invalid(inode, "only files and directories have size hints"));
    }
    inode.expect_mutable(true)?;
    let extent = hints.extent.map(|bytes| blocks(volume, inode, bytes)).transpose()?;
    let copy = hints.copy.map(|bytes| blocks(volume, inode, bytes)).transpose()?;
    if extent.is_some_and(|hint| hint != inode.core.extsize)
        && !is_directory
        && (inode.data.extent_count() > 0 || inode.memory.dirty.is_some())
    {
        return Err(invalid(inode, "it has space already, which would not have the size"));
    }
    if copy.is_some() && !volume.geometry().features.reflink() {
        let what = format!("inode {number}: files of this volume do not share blocks");
        return Err(Error::NotSupported(what));
    }
    trans.begin_changes();
    let core = &mut inode.core;
    if let Some(hint) = extent {
        let flag = if is_directory { InodeFlags::EXTSZINHERIT } else { InodeFlags::EXTSIZE };
        core.flags.set(flag, hint > 0);
        core.extsize = hint;
    }
    if let Some(hint) = copy {
        core.flags2.set(InodeFlags2::COWEXTSIZE, hint > 0);
        core.cowextsize = hint;
    }
    inode.set_changed(now);
    trans.commit(&mut [inode])
}

fn blocks(volume: &Volume, inode: &InodeState, bytes: u64) -> Result<u32, Error> {
    let geometry = volume.geometry();
    let most = MAX_EXTENT_LEN.min(geometry.ag_blocks / 2);
    let (blocks, rest) = (bytes >> geometry.block_log, bytes % geometry.block_size() as u64);
    match u32::try_from(blocks) {
        Ok(blocks) if rest == 0 && blocks <= most => Ok(blocks),
        _ => {
            let (unit, most) =
                (geometry.block_size() as u64, u64::from(most) << geometry.block_log);
            Err(invalid(
                inode,
                &format!("a hint is a multiple of {unit} up to {most}, not {bytes}"),
            ))
        }
    }
}

fn invalid(inode: &InodeState, what: &str) -> Error {
    Error::Invalid(format!("inode {}: {what}", inode.number))
}
