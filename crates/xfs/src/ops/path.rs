//! Paths inside a volume.

use super::lookup_in_use;
use crate::error::Error;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// The inode at a path from the root directory. Symbolic links are not followed; empty
/// components and `.` stand for the directory itself, `..` for what the volume says.
///
/// # Errors
/// A component does not exist or is no directory; damage; the device failed.
pub fn resolve(volume: &Volume, path: &[u8]) -> Result<InodeNumber, Error> {
    let mut number = volume.geometry().root_inode;
    for name in path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
        let directory = volume.inode(number)?;
        let directory = directory.read();
        number = lookup_in_use(volume, &directory, name)
            .map_err(|error| match error {
                Error::WrongKind { what, kind, .. } => {
                    Error::WrongKind { path: path_text(path), what, kind }
                }
                other => other,
            })?
            .ok_or_else(|| Error::NotFound(path_text(path)))?;
    }
    Ok(number)
}

/// A path or name for a message: bytes outside printable ASCII are escaped.
#[must_use]
pub fn path_text(path: &[u8]) -> String {
    path.escape_ascii().to_string()
}
