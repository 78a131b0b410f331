//! The free list and the trees of the last group moved in front of its new end.

use super::size::Size;
use crate::alloc;
use crate::error::Error;
use crate::units::AgBlock;
use crate::volume::Volume;

/// Moves them, each block in a transaction of its own; the volume gives out nothing behind the end.
/// The free list is as long as it must be afterwards, so that cutting the group takes no block.
///
/// # Errors
/// There is no space for them in the group; a tree is damaged; the device failed.
pub(super) fn move_out(volume: &Volume, size: Size) -> Result<(), Error> {
    let (ag, end) = (size.last_group(), AgBlock(size.last));
    if volume.geometry().ag_length(ag) == size.last {
        return Ok(());
    }
    loop {
        let mut trans = volume.begin()?;
        let moved = trans.in_group(ag, |trans, group| alloc::move_own_block(trans, group, end))?;
        trans.commit(&mut [])?;
        if !moved {
            return Ok(());
        }
    }
}
