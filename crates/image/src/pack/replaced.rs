//! Files that came before under a name that comes again.

use std::sync::Arc;
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

/// A name that was taken away.
pub(super) struct Removed {
    pub(super) kind: FileType,
    /// Bytes of data that are gone, holes not counted.
    pub(super) bytes: u64,
    /// Whether the inode is gone, too.
    pub(super) is_last: bool,
}

/// Takes a name away as if it had never been there: times stay as they are. Nothing may be on its way
/// to the blocks of the file.
pub(super) fn remove(volume: &Volume, parent: &Arc<Inode>, name: &[u8]) -> Result<Removed, Error> {
    let (directory, of_directory) = times(parent);
    let number = ops::lookup(volume, &parent.read(), name)?
        .ok_or_else(|| Error::NotFound(ops::path_text(name)))?;
    let inode = volume.inode(number)?;
    let (_, of_file) = times(&inode);
    let (kind, is_last, bytes) = {
        let state = inode.read();
        let (kind, is_last) = (state.file_type(), state.core.nlink == 1);
        let gone = is_last && kind == FileType::Regular;
        let ranges = if gone { ops::data_ranges(volume, &state)? } else { Vec::new() };
        (kind, is_last, ranges.iter().map(|range| range.end - range.start).sum())
    };
    drop(inode);
    ops::unlink(volume, directory, name, of_directory.1)?;
    set_times(volume, directory, of_directory)?;
    if !is_last {
        set_times(volume, number, of_file)?;
    }
    Ok(Removed { kind, bytes, is_last })
}

/// Number of an inode, and when it was modified and changed.
fn times(inode: &Inode) -> (InodeNumber, (Timestamp, Timestamp)) {
    let state = inode.read();
    (state.number, (state.core.mtime, state.core.ctime))
}

fn set_times(
    volume: &Volume,
    number: InodeNumber,
    (modified, changed): (Timestamp, Timestamp),
) -> Result<(), Error> {
    let trans = volume.begin()?;
    let mut inode = volume.lock_inode(number)?;
    (inode.core.mtime, inode.core.ctime) = (modified, changed);
    inode.touch();
    trans.commit(&mut [&mut inode])
}
