//! The directories that an inode says it is in.

use crate::attr::parent;
use crate::bmap::ForkReader;
use crate::error::Error;
use crate::inode::{ForkKind, InodeState};
use crate::units::InodeNumber;
use crate::volume::Volume;

/// A directory, and the name of the inode in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The directory.
    pub directory: InodeNumber,
    /// The name.
    pub name: Vec<u8>,
}

/// Parent pointers of an inode, on volumes that have them.
///
/// # Errors
/// Its attributes are damaged, or the device failed.
pub fn parents(volume: &Volume, inode: &InodeState) -> Result<Vec<Parent>, Error> {
    let mut parents = Vec::new();
    if inode.attr.is_some() {
        let mut fork = ForkReader::new(volume, inode, ForkKind::Attr);
        parent::for_each_parent(&mut fork, &mut |pointer| {
            parents.push(Parent { directory: pointer.parent, name: pointer.name.to_vec() });
            Ok(())
        })?;
    }
    Ok(parents)
}
