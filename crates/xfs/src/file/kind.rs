//! Which files have data to be read and changed.

use crate::error::{Error, ErrorKind};
use crate::format::{FileType, InodeFlags, InodeFlags2};
use crate::inode::InodeState;
use crate::volume::Volume;

/// Refuses inodes that are no regular file with data on the volume.
pub(super) fn check_kind(volume: &Volume, inode: &InodeState) -> Result<(), Error> {
    let superblock = volume.superblock();
    let own = [superblock.rt_bitmap_inode, superblock.rt_summary_inode];
    expect_regular(inode)?;
    let (what, kind) = if inode.core.flags.contains(InodeFlags::REALTIME) {
        ("its data is on a realtime device", ErrorKind::NotSupported)
    } else if inode.core.flags2.contains(InodeFlags2::METADATA) || own.contains(&inode.number) {
        ("it belongs to the volume itself", ErrorKind::NotPermitted)
    } else {
        return Ok(());
    };
    Err(Error::WrongKind { path: format!("inode {}", inode.number), what, kind })
}

/// Refuses inodes that are no regular file.
fn expect_regular(inode: &InodeState) -> Result<(), Error> {
    inode.expect_in_use()?;
    let kind = match inode.file_type() {
        FileType::Regular => return Ok(()),
        FileType::Directory => ErrorKind::IsDirectory,
        _ => ErrorKind::Invalid,
    };
    let path = format!("inode {}", inode.number);
    Err(Error::WrongKind { path, what: "not a regular file", kind })
}
