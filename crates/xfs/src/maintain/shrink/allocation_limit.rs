//! The limit of allocation between the blocks that stay and those that go.

use super::size::{SLACK, Size};
use crate::btree::Bnobt;
use crate::error::Error;
use crate::group::Reserved;
use crate::group_tree::free_extents;
use crate::units::AgBlock;
use crate::volume::Volume;

/// Has the volume give nothing out of what goes, and set aside in the last group what a group of its
/// new length needs, and the slack: files that took that would be in the way of a shrink that is cut
/// here and goes on.
pub(super) fn set(volume: &mut Volume, size: Size) -> Result<(), Error> {
    let (ag, mut free) = (size.last_group(), 0);
    if size.last < volume.geometry().ag_length(ag) {
        free_extents::<Bnobt>(volume, ag, |extent| {
            let end = extent.start.0.saturating_add(extent.len);
            free += end.saturating_sub(extent.start.0.max(size.last));
        })?;
    }
    let geometry = size.superblock(volume.superblock()).geometry();
    volume.limit_allocation(ag, AgBlock(size.last), free);
    if let Some(mut guard) = volume.lock_group(ag, true)? {
        guard.state().reserved = Reserved::new(&geometry, ag).with_slack(SLACK);
    }
    Ok(())
}
