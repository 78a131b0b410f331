//! The last group made shorter.
//!
//! One transaction takes the free tail out of the trees, and shortens headers and superblock: a
//! crash leaves either length. The journal carries it, as the number of groups stays.

use super::size::Size;
use crate::alloc;
use crate::error::Error;
use crate::ops::superblock;
use crate::units::AgBlock;
use crate::volume::{LiveOptions, Volume, read_superblock, write_copies};
use undercroft_block::Reserved;

/// Offsets of what changes in the superblock.
const BLOCKS: usize = 8;
const FREE_BLOCKS: usize = 144;

/// Cuts the free tail of the last group off.
///
/// # Errors
/// Something there is in use; the volume is damaged; the device failed.
pub(super) fn shorten(device: &Reserved, size: Size) -> Result<(), Error> {
    let volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    let geometry = volume.geometry();
    let ag = size.last_group();
    let gone = geometry.ag_length(ag) - size.last;
    if gone > 0 {
        let free_blocks = volume.counters()?.free_blocks.saturating_sub(gone.into());
        let mut trans = volume.begin()?;
        trans.in_group(ag, |trans, group| alloc::cut_tail(trans, group, AgBlock(size.last)))?;
        superblock::change(&mut trans, |edit| {
            edit.put_be64(BLOCKS, size.blocks(geometry));
            edit.put_be64(FREE_BLOCKS, free_blocks);
        })?;
        trans.commit(&mut [])?;
        volume.sync()?;
    }
    volume.close()?;
    // Before anything behind the end is given up.
    write_copies(device.as_ref(), &read_superblock(device)?)
}
