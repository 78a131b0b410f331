//! Where the data of a file is: its extents, and which of them other files have, too.

use crate::ag;
use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::inode::{ForkKind, InodeState};
use crate::units::FsBlock;
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
    let geometry = volume.geometry();
    let (ag, start) = geometry.split_block(extent.start);
    let mut at = extent;
    let mut push = |at: &mut Extent, len: u32, shared: bool| {
        if len > 0 {
            map.push(MappedExtent { extent: Extent { len, ..*at }, shared });
        }
        at.offset.0 += u64::from(len);
        at.start = FsBlock(at.start.0 + u64::from(len));
        at.len -= len;
    };
    ag::shared_extents(volume, ag, start, extent.len, |shared| {
        let before = shared.start.0 - geometry.split_block(at.start).1.0;
        push(&mut at, before, false);
        push(&mut at, shared.len, true);
    })?;
    let rest = at.len;
    push(&mut at, rest, false);
    Ok(())
}
