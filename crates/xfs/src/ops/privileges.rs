//! What a program may do more than those who run it, taken away when its content changes.

use super::locks::Locked;
use super::metadata::remove_capability;
use super::unlink::affected;
use crate::bmap::worst_case;
use crate::error::Error;
use crate::format::FileType;
use crate::log::Work;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Takes bits of the mode away from a regular file, and its capabilities. They go with a change that
/// was allowed: flags that forbid changes do not keep them, and times are set by that change alone.
///
/// # Errors
/// No space; a damaged structure; the device failed.
pub fn drop_privileges(volume: &Volume, number: InodeNumber, bits: u16) -> Result<(), Error> {
    let mut trans = volume.begin_for(Work::Attribute)?;
    let mut inodes = Locked::new(volume, &[number])?;
    let inode = inodes.get(number);
    inode.expect_in_use()?;
    if inode.file_type() != FileType::Regular {
        return Ok(());
    }
    if inode.attr.is_some() {
        trans.reserve_for_removal(worst_case::removal(&trans));
        trans.lock_groups(affected(volume, inode)?)?;
    }
    trans.begin_changes();
    remove_capability(&mut trans, inode)?;
    inode.core.mode &= !bits;
    inode.core.changecount += 1;
    inode.touch();
    trans.commit(&mut [inode])
}
