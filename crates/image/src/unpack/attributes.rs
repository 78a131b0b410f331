//! Extended attributes on their way out.

use undercroft_xfs::inode::InodeState;
use undercroft_xfs::mkfs::is_property;
use undercroft_xfs::ops::{self, NamedValue};
use undercroft_xfs::{Error, Volume};

/// All attributes of an inode under their full names, sorted: the order on the volume means
/// nothing, and archives of equal trees should be equal. Properties of the volume, which its root
/// directory carries, are not part of the tree.
pub(super) fn of(volume: &Volume, inode: &InodeState) -> Result<Vec<NamedValue>, Error> {
    let mut attributes = ops::attributes(volume, inode)?;
    if inode.number == volume.geometry().root_inode {
        attributes.retain(|(name, _)| !is_property(name));
    }
    attributes.sort_unstable();
    Ok(attributes)
}
