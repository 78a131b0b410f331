//! Mounts of this command, as the system lists them.

use rustix::fs::getxattr;
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use undercroft_fuse::{MountPoint, STATUS_ATTRIBUTE, Status, listed};

/// Longest status.
const STATUS_BYTES: usize = 64 << 10;

/// The type that the system has for them.
const TYPE: &str = "fuse.undercroft";

/// The type of those that another program has made for a server of this command.
const TYPE_OF_OTHERS: &str = "fuse";

/// The status of the mount at a directory.
pub(crate) fn status_of(directory: &Path) -> Result<Status, Errno> {
    let mut value = vec![0; STATUS_BYTES];
    let len = getxattr(directory, STATUS_ATTRIBUTE, &mut value[..])?;
    Status::from_json(&value[..len]).map_err(|_| Errno::PROTO)
}

/// Where the image of this name is mounted.
pub(crate) fn place_of(image: &Path) -> Option<PathBuf> {
    let mut all = listed().unwrap_or_default().into_iter();
    all.find(|mount| mount.kind == TYPE && mount.source == image).map(|mount| mount.directory)
}

/// The directories of all mounts of this command, as this process sees them.
pub(crate) fn places() -> std::io::Result<Vec<PathBuf>> {
    let own = listed()?.into_iter().filter(|mount| mount.kind == TYPE);
    Ok(own.map(|mount| mount.directory).collect())
}

/// Whether a mount is one of this command, answering or not.
pub(crate) fn is_own(mount: &MountPoint) -> bool {
    mount.listed().is_some_and(|listed| listed.kind == TYPE)
}

/// Whether a mount can have its status from a server of this command. File systems that show another
/// one (an overlay, a bind mount in user space) hand on what that says.
pub(crate) fn may_be_own(mount: &MountPoint) -> bool {
    let kind = mount.listed().map(|listed| listed.kind);
    // Without a list there is nothing to go by.
    kind.is_none_or(|kind| kind == TYPE || kind == TYPE_OF_OTHERS)
}
