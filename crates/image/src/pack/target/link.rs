//! Names for files that have none.

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Links a file without a name into its directory.
pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
    match link_descriptor(file, name) {
        // Not allowed, which the system says so, or no such flag.
        Err(Errno::NOENT | Errno::INVAL) => {}
        result => return Ok(result?),
    }
    Ok(rustix::fs::linkat(CWD, path_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Links by the descriptor alone: allowed to the opener of the file since Linux 6.10, before to root.
fn link_descriptor(file: &File, name: &Path) -> Result<(), Errno> {
    rustix::fs::linkat(file, "", CWD, name, AtFlags::EMPTY_PATH)
}

/// The path of a descriptor, where /proc is mounted.
fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether a file without a name in `directory` can get one later. A system without /proc may not
/// allow it.
pub(super) fn can_be_named(file: &File, directory: &Path) -> bool {
    // The name is taken, so nothing is made: the system comes to say so if it allows the link.
    link_descriptor(file, directory) == Err(Errno::EXIST) || Path::new(&path_of(file)).exists()
}
