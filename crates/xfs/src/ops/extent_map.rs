//! Where the data of a file is: its extents, and which of them other files have, too.

use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::group_tree;
use crate::inode::{ForkKind, InodeState};
use crate::units::{FileBlock, FsBlock};
use crate::volume::Volume;

/// A part of a file, all of it mapped in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedExtent {
    /// Blocks of the file and of the volume; whether they were written.
    pub extent: Extent,
    /// Whether other files, or other places of this one, have the same blocks.
    pub shared: bool,
}

/// All extents of the data of a file, ascending; what lies between them is not stored. Parts behind
/// the end of the file are preallocated space.
///
/// # Errors
/// A damaged mapping or tree of reference counts, or the device failed.
pub fn extent_map(volume: &Volume, inode: &InodeState) -> Result<Vec<MappedExtent>, Error> {
    let extents = bmap::extents(volume, inode, ForkKind::Data)?.as_slice();
    let mut map = Vec::with_capacity(extents.len());
    let may_share = inode.core.flags2.contains(InodeFlags2::REFLINK);
    for extent in extents {
        if may_share && !extent.unwritten {
            add_parts(volume, *extent, &mut map)?;
        } else {
            map.push(MappedExtent { extent: *extent, shared: false });
        }
    }
    Ok(map)
}

/// Adds an extent in parts that are shared or not.
fn add_parts(volume: &Volume, extent: Extent, map: &mut Vec<MappedExtent>) -> Result<(), Error> {
    let (ag, start) = volume.geometry().split_block(extent.start);
    let known = map.len();
    let mut push = |from: u32, to: u32, shared: bool| match map[known..].last_mut() {
        _ if from >= to => {}
        // Shared with more files than the part before.
        Some(last) if last.shared && shared => last.extent.len += to - from,
        _ => {
            let offset = FileBlock(extent.offset.0 + u64::from(from));
            let start = FsBlock(extent.start.0 + u64::from(from));
            map.push(MappedExtent {
                extent: Extent { offset, start, len: to - from, ..extent },
                shared,
            });
        }
    };
    let mut done = 0;
    group_tree::shared_extents(volume, ag, start, extent.len, |shared| {
        let from = (shared.start.0 - start.0).max(done);
        let to = (shared.start.0 - start.0 + shared.len).min(extent.len);
        push(done, from, false);
        push(from, to, true);
        done = done.max(to);
    })?;
    push(done, extent.len, false);
    Ok(())
}
